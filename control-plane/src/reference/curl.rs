//! An example as a command of curl. Placeholders are variables of the shell.

use serde_json::Value;

use super::example::Example;
use crate::catalog::Operation;

/// Returns the command; empty if the example does not fit the operation.
pub(super) fn command(operation: &Operation, example: &Example, base_url: &str) -> String {
    let Ok(request) = operation.outline(&example.params) else { return String::new() };
    let path = request.path_and_query.replace("%24", "$");
    let mut command = "curl".to_owned();
    if request.method != http::Method::GET && (request.body.is_none() || request.method != http::Method::POST)
    {
        command += &format!(" -X {}", request.method);
    }
    command += &format!(" \"{base_url}{path}\"");
    if operation.scopes.is_some() {
        command += " \\\n  -H \"Authorization: Bearer $KEY\"";
    }
    for (name, value) in &request.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).replace('"', "\\\"");
        command += &format!(" \\\n  -H \"{name}: {value}\"");
    }
    if let Some(body) = request.body {
        command += &format!(" \\\n  -H 'Content-Type: application/json' \\\n  -d '{}'", quoted(&body));
    }
    command
}

/// Returns JSON for single quotes of a shell. A placeholder ends the quotes and begins them again.
fn quoted(body: &Value) -> String {
    let text = body.to_string().replace('\'', "'\\''");
    let mut parts = text.split('$');
    let mut quoted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let length = part.find(|char: char| !char.is_ascii_alphanumeric()).unwrap_or(part.len());
        let (name, rest) = part.split_at(length);
        quoted += &if name.is_empty() { format!("${rest}") } else { format!("'\"${name}\"'{rest}") };
    }
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shell_reads_the_json_back() {
        for (body, expected) in [
            (json!({"a": "it's"}), r#"{"a":"it'\''s"}"#),
            (json!({"a": "$pageId"}), r#"{"a":"'"$pageId"'"}"#),
            (json!({"a": "5 $ each"}), r#"{"a":"5 $ each"}"#),
        ] {
            assert_eq!(quoted(&body), expected);
        }
    }
}
