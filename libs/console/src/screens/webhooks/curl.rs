//! A request as a call of curl, to be pasted into a shell.

use std::fmt::Write;

use serde_json::Value;

use crate::formatting::visible_text::visible;

/// Returns the call that repeats a request byte for byte.
pub(super) fn curl(request: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut call = format!("curl -X {} {}", text(&request["method"]), quoted(&text(&request["url"])));
    for header in request["headers"].as_array().into_iter().flatten() {
        let line = format!("{}: {}", text(&header["name"]), text(&header["value"]));
        // Writing to memory does not fail.
        let _written = write!(call, " \\\n  -H {}", quoted(&line));
    }
    let _written = write!(call, " \\\n  --data-binary {}", quoted(&text(&request["body"])));
    call
}

/// Quotes text for a shell. Characters that a page shows as their codes would not be copied as they are, so they are escaped,
/// which needs the quotes of bash, ksh and zsh.
fn quoted(text: &str) -> String {
    if text.chars().all(is_plain) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut escaped = String::from("$'");
    for char in text.chars() {
        match char {
            '\'' | '\\' => escaped.extend(['\\', char]),
            _ if is_plain(char) => escaped.push(char),
            _ => {
                for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to memory does not fail.
                    let _written = write!(escaped, r"\x{byte:02x}");
                }
            }
        }
    }
    escaped + "'"
}

/// Whether a page shows a character as it is. A carriage return would become a line feed.
fn is_plain(char: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = char.encode_utf8(&mut buffer);
    char != '\r' && visible(text) == text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_repeats_the_request() {
        let request = json!({ "method": "POST", "url": "https://a.test/?a=1&b='", "body": "{\"a\": \"it's\"}",
            "headers": [{ "name": "webhook-id", "value": "1" }, { "name": "x", "value": "$(id) `id` \\" }] });
        let expected = [
            r"curl -X POST 'https://a.test/?a=1&b='\''' \",
            r"  -H 'webhook-id: 1' \",
            r"  -H 'x: $(id) `id` \' \",
            r#"  --data-binary '{"a": "it'\''s"}'"#,
        ];
        assert_eq!(curl(&request), expected.join("\n"));
    }

    #[test]
    fn what_a_page_can_not_show_is_escaped() {
        assert_eq!(quoted("a\u{202e}'\\b"), r"$'a\xe2\x80\xae\'\\b'");
        assert_eq!(quoted("é\n\t"), "'é\n\t'");
        assert_eq!(quoted("a\rb"), r"$'a\x0db'");
    }
}
