//! Sentences about wrong input, in the terms of its fields instead of those of the parsers.

use chrono::{DateTime, Utc};
use domain::FieldError;
use domain::parser_messages::{TIME, not_a_time, not_an_id, sentence};
use serde_json::Value;
use serde_json::error::Category;

use super::schema::Expected;

/// Converts serde's message to a field error. A field that the message names in backquotes is appended to the path.
pub(super) fn field_error(path: &str, message: &str) -> FieldError {
    let message = message.split(" at line ").next().unwrap_or(message);
    let named = message.split('`').nth(1).unwrap_or_default();
    let parent = path.trim_matches('.');
    let under = |name: &str| match parent {
        "" | "?" => name.to_owned(),
        _ if parent == name || parent.ends_with(&format!(".{name}")) => parent.to_owned(),
        _ => format!("{parent}.{name}"),
    };
    if message.starts_with("missing field") {
        return FieldError::new(under(named), "required", format!("{} is required", under(named)));
    }
    if message.starts_with("unknown field") {
        return FieldError::new(
            under(named),
            "unknown_field",
            format!("{} is not a field of this request", under(named)),
        );
    }
    if message.starts_with("duplicate field") {
        return FieldError::new(under(named), "duplicate", format!("{} is given twice", under(named)));
    }
    let field = if matches!(parent, "" | "?") { "body" } else { parent };
    FieldError::new(field, "type", sentence(field, message))
}

/// `name must be a text, not a number`
pub(super) fn wrong_type(field: &str, expected: &Expected, given: &str) -> String {
    format!("{field} must be {}, not {given}", phrase(expected))
}

/// The sentence about a text that can't be read as what is expected.
pub(super) fn wrong_text(field: &str, expected: &Expected) -> String {
    match expected {
        Expected::Id => not_an_id(field),
        Expected::Time => not_a_time(field),
        _ => format!("{field} must be {}", phrase(expected)),
    }
}

/// The kind of a JSON value.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(true) => "true",
        Value::Bool(false) => "false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns whether a text can be read as a point in time.
pub(super) fn is_time(text: &str) -> bool {
    text.parse::<DateTime<Utc>>().is_ok()
}

/// `not valid JSON at line 3, column 7: a value is expected here`
pub(super) fn json_syntax(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let cause = match message {
        _ if error.classify() == Category::Eof => "it ends before the JSON is complete",
        "expected value" => "a value is expected here",
        "expected ident" => {
            "only true, false and null are written without quotes; is one of them misspelt or cut?"
        }
        "expected `\"`" => "a double quote is expected here",
        "number out of range" => "this number has too many digits before the point",
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "a \\u escape of half a character needs its other half"
        }
        "invalid unicode code point" => "this is not a character of Unicode",
        "expected `:`" => "a colon is expected after the name",
        "expected `,` or `}`" => "a comma or `}` is expected here; is the text before it complete?",
        "expected `,` or `]`" => "a comma or `]` is expected here; is the text before it complete?",
        "trailing comma" => "a comma must not stand before `}` or `]`",
        "trailing characters" => "more text follows the complete JSON",
        "key must be a string" => "a name in double quotes is expected here, and no comma before `}`",
        "invalid number" => "this is not a number of JSON",
        "invalid escape" => "a backslash must be followed by one of \" \\ / b f n r t u",
        "recursion limit exceeded" => "it is nested deeper than 127 levels",
        _ if message.starts_with("control character") => {
            "a line break or tab in a text must be written as \\n or \\t"
        }
        // Never the text of the parser.
        _ => "the text from here on is not JSON",
    };
    format!("not valid JSON at line {}, column {}: {cause}", error.line(), error.column())
}

fn phrase(expected: &Expected) -> String {
    let phrase = match expected {
        Expected::Text => "a text",
        Expected::Id => "an id (a UUID)",
        Expected::Time => return format!("a time, such as {TIME}"),
        Expected::WholeNumber => "a whole number",
        Expected::Number => "a number",
        Expected::Boolean => "true or false",
        Expected::List => "a list",
        Expected::Object => "an object",
        Expected::OneOf(words) => match words.as_slice() {
            [only] => return format!("`{only}`"),
            words => return format!("one of {}", words.join(", ")),
        },
    };
    phrase.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_json_is_told_without_the_words_of_the_parser() {
        let half = "a \\u escape of half a character needs its other half";
        for (json, cause) in [
            (
                r#"{"a": tru}"#,
                "only true, false and null are written without quotes; is one of them misspelt or cut?",
            ),
            (
                r#"{"a": nul}"#,
                "only true, false and null are written without quotes; is one of them misspelt or cut?",
            ),
            (r#"{"a": "\ud800"}"#, half),
            (r#"{"a": "\ud800\u0041"}"#, half),
            (r#"{"a": "\q"}"#, "a backslash must be followed by one of \" \\ / b f n r t u"),
            (r#"{"a": 1e999}"#, "this number has too many digits before the point"),
            (r#"{"a": 01}"#, "this is not a number of JSON"),
            (r#"{"a": 1,}"#, "a comma must not stand before `}` or `]`"),
            (r#"{"a" 1}"#, "a colon is expected after the name"),
            (r#"{"a": 1"#, "it ends before the JSON is complete"),
            (r#"{} x"#, "more text follows the complete JSON"),
        ] {
            let error = serde_json::from_str::<Value>(json).unwrap_err();
            let told = json_syntax(&error);
            assert!(told.starts_with("not valid JSON at line 1, column "), "{json}: {told}");
            assert!(told.ends_with(&format!(": {cause}")), "{json}: {told} ({error})");
        }
    }
}
