//! Lines of values in JSON text, by the paths that the API's problems name.

use std::fmt::Write;

use serde_json::Value;

/// Where the scan is: a member of an object, or an element of a list.
enum Place {
    Object(Option<String>),
    List(usize),
}

/// Returns the line of the value at each path, from 1 on. A value that is missing has the line of the nearest one around it.
/// The text must be valid JSON.
pub(super) fn lines_of(text: &str, paths: &[&str]) -> Vec<usize> {
    let mut found: Vec<(usize, usize)> = paths.iter().map(|_| (0, 1)).collect();
    let mut places: Vec<Place> = Vec::new();
    let (mut at, mut line) = (0, 1);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        let mut end = at + 1;
        match byte {
            b'\n' => line += 1,
            b'}' | b']' => drop(places.pop()),
            b',' => match places.last_mut() {
                Some(Place::List(index)) => *index += 1,
                Some(Place::Object(name)) => *name = None,
                None => {}
            },
            b'"' => {
                end = end_of_text(bytes, at);
                match places.last_mut() {
                    Some(Place::Object(name @ None)) => *name = member(&text[at..end]),
                    _ => note(&places, line, paths, &mut found),
                }
            }
            b'{' | b'[' => {
                note(&places, line, paths, &mut found);
                places.push(if *byte == b'{' { Place::Object(None) } else { Place::List(0) });
            }
            b' ' | b'\t' | b'\r' | b':' => {}
            _ => note(&places, line, paths, &mut found),
        }
        at = end;
    }
    found.into_iter().map(|(_, line)| line).collect()
}

/// Remembers the line for the paths that lead here or deeper.
fn note(places: &[Place], line: usize, paths: &[&str], found: &mut [(usize, usize)]) {
    let mut here = String::new();
    for place in places {
        match place {
            Place::Object(Some(name)) => {
                if !here.is_empty() {
                    here.push('.');
                }
                here.push_str(name);
            }
            Place::List(index) => {
                // Writing to memory does not fail.
                let _written = write!(here, "[{index}]");
            }
            Place::Object(None) => {}
        }
    }
    for (path, (length, found)) in paths.iter().zip(found) {
        let is_around = path
            .strip_prefix(here.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
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
