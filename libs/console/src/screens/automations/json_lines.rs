//! Lines of values in JSON text, by the paths that the API's problems name.

use std::fmt::Write;

use serde_json::Value;

/// Where the scan is: a member of an object, or an element of a list.
enum Place {
    Object(Option<String>),
    List(usize),
}

/// A container around the scan, and the length of the path that leads to it.
struct Container {
    place: Place,
    path_length: usize,
}

/// The longest path that is looked for. Those of the API's problems are shorter, unless a name in the text is very long.
const PATH_BYTES_MAX: usize = 500;

/// Returns the line of the value at each path, from 1 on. A value that is missing has the line of the nearest one around it.
/// The text must be valid JSON. The time grows with the length of the text, whatever it contains.
pub(super) fn lines_of(text: &str, paths: &[&str]) -> Vec<usize> {
    let mut found: Vec<(usize, usize)> = paths.iter().map(|_| (0, 1)).collect();
    let mut containers: Vec<Container> = Vec::new();
    // The path of the innermost container.
    let mut path = String::new();
    let (mut at, mut line) = (0, 1);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        let mut end = at + 1;
        let mut is_value = false;
        match byte {
            b'\n' => line += 1,
            b'}' | b']' => path.truncate(containers.pop().map_or(0, |closed| closed.path_length)),
            b',' => match containers.last_mut().map(|container| &mut container.place) {
                Some(Place::List(index)) => *index += 1,
                Some(Place::Object(name)) => *name = None,
                None => {}
            },
            b'"' => {
                end = end_of_text(bytes, at);
                match containers.last_mut().map(|container| &mut container.place) {
                    Some(Place::Object(name @ None)) => *name = member(&text[at..end]),
                    _ => is_value = true,
                }
            }
            b' ' | b'\t' | b'\r' | b':' => {}
            _ => is_value = true,
        }
        if is_value {
            let path_length = path.len();
            push_step(&mut path, containers.last().map(|container| &container.place));
            note(&path, line, paths, &mut found);
            match byte {
                b'{' => containers.push(Container { place: Place::Object(None), path_length }),
                b'[' => containers.push(Container { place: Place::List(0), path_length }),
                _ => path.truncate(path_length),
            }
        }
        at = end;
    }
    found.into_iter().map(|(_, line)| line).collect()
}

/// Appends the step from a container to the value at this place.
fn push_step(path: &mut String, place: Option<&Place>) {
    match place {
        Some(Place::Object(Some(name))) => {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
        }
        Some(Place::List(index)) => {
            // Writing to memory does not fail.
            let _written = write!(path, "[{index}]");
        }
        Some(Place::Object(None)) | None => {}
    }
}

/// Remembers the line for the paths that lead here or deeper.
fn note(here: &str, line: usize, paths: &[&str], found: &mut [(usize, usize)]) {
    for (path, (length, found)) in paths.iter().zip(found) {
        let is_around = path.len() <= PATH_BYTES_MAX
            && path.strip_prefix(here).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        if is_around && here.len() > *length {
            (*length, *found) = (here.len(), line);
        }
    }
}

/// Returns the end of the text that begins at a quotation mark.
fn end_of_text(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn member(quoted: &str) -> Option<String> {
    serde_json::from_str::<Value>(quoted).ok()?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_to_its_line() {
        let text = "{\n \"trigger\": {\"type\": \"http\"},\n \"steps\": [\n  {\"id\": \"a,]\\\"\",\n   \"url\": 1},\n  {\n   \
                    \"branches\": [{\"if\":\n \"x\"}]}]\n}";
        let paths = [
            "trigger.type",
            "steps[0].url",
            "steps[1].branches[0].if",
            "steps[1].url",
            "steps",
            "else",
            "steps[0].urls",
        ];
        assert_eq!(lines_of(text, &paths), [2, 5, 8, 6, 3, 1, 4]);
    }

    #[test]
    fn other_text_does_not_break_it() {
        for text in ["", "{\"", "]]]", "{\"a\\", "\"\\\"", "[,,,", "ä"] {
            assert_eq!(lines_of(text, &["a"]).len(), 1, "{text}");
        }
    }

    #[test]
    fn denial_of_service_by_nested_or_long_names_is_prevented() {
        let name = "n".repeat(500_000);
        let list = format!("{{\"{name}\": [{}]}}", vec!["0"; 200_000].join(","));
        for text in ["[".repeat(1 << 20), "{\"a\":".repeat(200_000), list] {
            // It took hours when each value formatted its whole path.
            assert_eq!(lines_of(&text, &["a", &format!("{name}[199999]")]), [1, 1]);
        }
    }

    proptest! {
        #[test]
        fn every_value_of_pretty_json_has_its_own_line(keys in prop::collection::vec("[a-z\"\\\\\\[{,é]{1,6}", 1..8)) {
            let members: serde_json::Map<_, _> = keys.iter().map(|key| (key.clone(), json!([1, { "b": key }]))).collect();
            let text = serde_json::to_string_pretty(&members).unwrap();
            for (at, key) in members.keys().enumerate() {
                let path = format!("{key}[1].b");
                prop_assert_eq!(lines_of(&text, &[&path]), [2 + at * 6 + 3]);
            }
        }
    }
}
