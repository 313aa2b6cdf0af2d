//! Sentences about input that a parser refused, in the terms of its fields instead of those of the parser.

/// A time as every response has it.
pub const TIME: &str = "2030-01-31T09:30:00Z";

/// `folderId is not an id (expected a UUID)`
pub fn not_an_id(field: &str) -> String {
    format!("{field} is not an id (expected a UUID)")
}

/// `closesAt must be a time, such as …`
pub fn not_a_time(field: &str) -> String {
    format!("{field} must be a time, such as {TIME}")
}

/// The messages of chrono's parser.
const TIME_MESSAGES: [&str; 7] = [
    "premature end of input",
    "input contains invalid characters",
    "input is out of range",
    "trailing input",
    "input is not enough for unique date and time",
    "no possible date and time matching input",
    "bad or unsupported format string",
];

/// Returns the sentence for a parser's message about a field.
pub fn sentence(field: &str, message: &str) -> String {
    if message.contains("UUID") {
        return not_an_id(field);
    }
    if TIME_MESSAGES.contains(&message) {
        return not_a_time(field);
    }
    let of_type = ["invalid type: ", "invalid value: ", "invalid length "];
    if let Some(rest) = of_type.iter().find_map(|begin| message.strip_prefix(begin)) {
        let (given, expected) = rest.rsplit_once(", expected ").unwrap_or((rest, "another value"));
        return match expected_by_serde(expected) {
            Some(expected) if message.starts_with("invalid type") => {
                format!("{field} must be {expected}, not {}", given_to_serde(given))
            }
            Some(expected) => format!("{field} must be {expected}, of a size that fits"),
            None => format!("{field} must be {expected}"),
        };
    }
    if let Some((_, words)) =
        message.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("{field} must be {}", words.replace('`', ""));
    }
    let detail = match message {
        _ if message.starts_with("invalid number") => "must be a whole number",
        "invalid digit found in string"
        | "cannot parse integer from empty string"
        | "number too large to fit in target type"
        | "number too small to fit in target type" => "must be a whole number",
        "invalid float literal" | "cannot parse float from empty string" => "must be a number",
        "neither true nor false" => "must be true or false",
        "number out of range" => "is a number with too many digits before the point",
        "recursion limit exceeded" => "is nested deeper than 127 levels",
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "has half a character: a \\u escape of a pair needs its other half"
        }
        _ if message.starts_with("data did not match any variant") => {
            "has none of the forms that are allowed here"
        }
        "invalid unicode code point" => "has a \\u escape that is no character",
        "expected value" | "expected ident" => "has a value that is none of JSON",
        // Never the text of a parser: it may name types of the program, or repeat what was sent.
        _ => "has a value that is not allowed here",
    };
    format!("{field} {detail}")
}

fn expected_by_serde(expected: &str) -> Option<&'static str> {
    Some(match expected {
        "a string" | "string" | "a borrowed string" => "a text",
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "f32" | "f64" | "a JSON number" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        _ if expected.starts_with("struct ") || expected.contains("tagged enum") => "an object",
        _ if expected.contains("date and time") => "a time",
        _ => return None,
    })
}

fn given_to_serde(given: &str) -> &'static str {
    let kinds = [
        ("integer", "a number"),
        ("floating point", "a number"),
        ("number", "a number"),
        ("string", "a text"),
        ("boolean `true`", "true"),
        ("boolean `false`", "false"),
        ("sequence", "a list"),
        ("map", "an object"),
    ];
    kinds.iter().find(|(begin, _)| given.starts_with(begin)).map_or("null", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sentence_has_the_words_of_a_parser() {
        for (message, told) in [
            ("invalid type: integer `7`, expected a string", "x must be a text, not a number"),
            ("invalid type: null, expected struct Field", "x must be an object, not null"),
            ("invalid type: boolean `true`, expected a sequence", "x must be a list, not true"),
            ("invalid value: integer `-1`, expected u32", "x must be a whole number, of a size that fits"),
            ("unknown variant `a`, expected `b` or `c`", "x must be b or c"),
            ("unknown variant `a`, expected one of `b`, `c`, `d`", "x must be one of b, c, d"),
            ("UUID parsing failed: invalid length: found 1", "x is not an id (expected a UUID)"),
            ("premature end of input", "x must be a time, such as 2030-01-31T09:30:00Z"),
            ("invalid digit found in string", "x must be a whole number"),
            ("invalid number: `1.5`, expected a whole one", "x must be a whole number"),
            (
                "lone leading surrogate in hex escape",
                "x has half a character: a \\u escape of a pair needs its other half",
            ),
            ("invalid unicode code point", "x has a \\u escape that is no character"),
            ("a message of a newer parser about `Vec<T>`", "x has a value that is not allowed here"),
        ] {
            assert_eq!(sentence("x", message), told);
        }
    }
}
