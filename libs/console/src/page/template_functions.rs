//! The filters and functions of templates.

use chrono_tz::Tz;
use minijinja::value::{Rest, Value};
use minijinja::{Environment, State};
use percent_encoding::utf8_percent_encode;

use super::icons;
use crate::formatting::numbers;
use crate::formatting::times::{Wall, parse};
use crate::formatting::visible_text::write_escaped;
use crate::url_query::{PATH_SEGMENT, UrlQuery};

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("icon", icons::svg);
    environment.add_function("query_with", query_with);
    environment.add_filter("count", numbers::count);
    environment.add_filter("bytes", numbers::bytes);
    environment.add_filter("duration", numbers::duration);
    environment.add_filter("percent", numbers::percent);
    environment.add_filter("moment", moment);
    environment.add_filter("brief", brief);
    environment.add_filter("verbatim", verbatim);
    environment.add_filter("path_segment", path_segment);
    environment.add_filter("initials", initials);
    environment.add_filter("web_link", web_link);
}

/// The wall clock of the page.
fn wall(state: &State<'_, '_>) -> Option<Wall> {
    let text = |name: &str| state.lookup(name).and_then(|value| value.as_str().map(str::to_owned));
    let zone = text("zone").and_then(|zone| zone.parse().ok()).unwrap_or(Tz::UTC);
    Some(Wall { now: parse(&text("now")?)?, zone })
}

/// Returns a time in words; text that is no time stays as it is.
fn moment(state: &State<'_, '_>, text: &str) -> String {
    let shown = wall(state).and_then(|wall| Some(wall.moment(parse(text)?)));
    shown.unwrap_or_else(|| text.to_owned())
}

/// Returns a time as short as a list needs.
fn brief(state: &State<'_, '_>, text: &str) -> String {
    let shown = wall(state).and_then(|wall| Some(wall.brief(parse(text)?)));
    shown.unwrap_or_else(|| text.to_owned())
}

/// Returns text for the value of an input, which must stay as it is when the form is posted again.
fn verbatim(text: &str) -> Value {
    let mut escaped = String::with_capacity(text.len());
    // Writing to memory does not fail.
    let _written = write_escaped(&mut escaped, text);
    Value::from_safe_string(escaped)
}

/// Returns text as one segment of a path.
fn path_segment(text: &str) -> String {
    utf8_percent_encode(text, PATH_SEGMENT).to_string()
}

/// Returns the first letters of the first two words.
fn initials(text: &str) -> String {
    let letters = text.split_whitespace().filter_map(|word| word.chars().find(|char| char.is_alphanumeric()));
    letters.take(2).flat_map(char::to_uppercase).collect()
}

/// Returns an address that may be a link: only http and https. Otherwise an empty text.
fn web_link(text: &str) -> String {
    let is_web =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    if is_web("http://") || is_web("https://") { text.to_owned() } else { String::new() }
}

/// Returns the query of this page with parameters of the query replaced, given as name, value, name, value; an empty value
/// removes its parameter.
fn query_with(state: &State<'_, '_>, changes: Rest<Value>) -> String {
    let pairs = state.lookup("query").into_iter().flat_map(|pairs| pairs.try_iter().into_iter().flatten());
    let text = |pair: &Value, at: usize| Some(pair.get_item_by_index(at).ok()?.as_str()?.to_owned());
    let mut query = UrlQuery::of(pairs.filter_map(|pair| Some((text(&pair, 0)?, text(&pair, 1)?))));
    for change in changes.chunks(2) {
        if let [name, value] = change {
            let value =
                if value.is_none() || value.is_undefined() { String::new() } else { value.to_string() };
            query = query.with(&name.to_string(), Some(value.as_str()).filter(|value| !value.is_empty()));
        }
    }
    query.to_link()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_become_links() {
        for kept in ["https://a.test/x", "HTTP://a.test"] {
            assert_eq!(web_link(kept), kept);
        }
        for refused in ["javascript:alert(1)", "data:text/html,x", " https://a.test", "", "//a.test", "http"]
        {
            assert!(web_link(refused).is_empty(), "{refused}");
        }
    }

    #[test]
    fn initials_come_from_any_script() {
        assert_eq!(initials("Mary Somerville of Jedburgh"), "MS");
        assert_eq!(initials("أمل الدين"), "أا");
        assert_eq!(initials("<script>"), "S");
    }
}
