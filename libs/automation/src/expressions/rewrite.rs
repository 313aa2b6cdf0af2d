//! Rewrites an expression to rhai's syntax.
//!
//! Texts may have single quotes, as JSON needs the double ones; any word may be a member (`trigger.payload.package` is
//! a reserved word in rhai); `null` and `default` are ours. Comments, interpolated and raw texts are refused, so that
//! this scanner and rhai's never disagree about where a text ends.

use super::error::ExpressionError;

/// The name under which `default` is registered: rhai reserves the word.
pub(super) const DEFAULT: &str = "default_value";

/// Returns the expression in rhai's syntax.
pub(super) fn to_rhai(text: &str) -> Result<String, ExpressionError> {
    let mut output = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' | '\'' => quoted(rest, &mut output)?,
            'a'..='z' | 'A'..='Z' | '_' => word(rest, &mut output),
            '0'..='9' => number(rest, &mut output),
            '.' => member(rest, &mut output)?,
            '?' if rest.starts_with("?.") => {
                output.push('?');
                1 + member(&rest[1..], &mut output)?
            }
            '`' => return Err(error("texts stand in \" or ', not in backquotes")),
            '#' if !rest.starts_with("#{") => return Err(error("`#` may only begin an object, `#{a: 1}`")),
            '/' if rest.starts_with("//") || rest.starts_with("/*") => {
                return Err(error("an expression can't hold comments"));
            }
            ';' | '$' | '@' | '\\' => return Err(error(&format!("unexpected `{first}`"))),
            _ if first.is_ascii() => {
                output.push(first);
                1
            }
            _ => return Err(error(&format!("unexpected `{first}` outside a text"))),
        };
        rest = &rest[taken..];
    }
    Ok(output)
}

fn error(message: &str) -> ExpressionError {
    ExpressionError(message.to_owned())
}

/// Copies a text with double quotes. Its escapes are those of JSON, and `\'`.
fn quoted(rest: &str, output: &mut String) -> Result<usize, ExpressionError> {
    let quote = rest.as_bytes()[0] as char;
    let mut content = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => content.push(escaped(&mut chars)?),
            _ if char == quote => {
                if rest[at + 1..].starts_with(['"', '\'']) {
                    return Err(error(
                        "two texts follow each other; write a quote inside a text as \\\" or \\'",
                    ));
                }
                push_literal(&content, output);
                return Ok(at + 1);
            }
            _ => content.push(char),
        }
    }
    Err(error("a text has no closing quote"))
}

fn escaped(chars: &mut impl Iterator<Item = (usize, char)>) -> Result<char, ExpressionError> {
    let unknown = || error("unknown escape in a text; known are \\\" \\' \\\\ \\/ \\n \\r \\t \\u0000");
    match chars.next().map(|(_, char)| char).ok_or_else(unknown)? {
        char @ ('"' | '\'' | '\\' | '/') => Ok(char),
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        't' => Ok('\t'),
        'u' => {
            let digits: String = chars.take(4).map(|(_, char)| char).collect();
            let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
            code.and_then(char::from_u32).ok_or_else(unknown)
        }
        _ => Err(unknown()),
    }
}

/// Writes a rhai literal that holds exactly the content.
fn push_literal(content: &str, output: &mut String) {
    output.push('"');
    for char in content.chars() {
        match char {
            '"' | '\\' => output.extend(['\\', char]),
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\t' => output.push_str("\\t"),
            _ if char.is_control() => output.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => output.push(char),
        }
    }
    output.push('"');
}

fn word_length(rest: &str) -> usize {
    rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(rest.len())
}

fn word(rest: &str, output: &mut String) -> usize {
    let length = word_length(rest);
    output.push_str(match &rest[..length] {
        "null" => "()",
        "default" => DEFAULT,
        word => word,
    });
    length
}

fn number(rest: &str, output: &mut String) -> usize {
    let bytes = rest.as_bytes();
    let mut length = 0;
    while let Some(byte) = bytes.get(length) {
        let is_fraction = *byte == b'.' && bytes.get(length + 1).is_some_and(u8::is_ascii_digit);
        let is_sign = matches!(byte, b'+' | b'-') && matches!(bytes[length - 1], b'e' | b'E');
        if !(byte.is_ascii_alphanumeric() || is_fraction || is_sign) {
            break;
        }
        length += 1;
    }
    output.push_str(&rest[..length]);
    length
}

/// Copies `.name(` as a call in front of which the value stands, and `.name` as `["name"]`.
fn member(rest: &str, output: &mut String) -> Result<usize, ExpressionError> {
    let after = rest[1..].trim_start();
    let start = rest.len() - after.len();
    let length = word_length(after);
    if length == 0 {
        return Err(error("a name must follow `.`"));
    }
    let name = &after[..length];
    if after[length..].trim_start().starts_with('(') {
        output.push('.');
        output.push_str(if name == "default" { DEFAULT } else { name });
    } else {
        output.push_str(&format!("[\"{name}\"]"));
    }
    Ok(start + length)
}
