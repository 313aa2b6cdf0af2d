//! Types of values. A value has the type of its default: a password of digits stays a string, and `"false"` in the
//! environment is a boolean where the default is one.

use toml::{Table, Value};

/// Parses a text from the environment or `--set` as the default's type.
pub(super) fn parse(text: &str, default: &Value) -> Result<Value, String> {
    let expected = |what: &str| format!("expected {what}");
    match default {
        Value::String(_) => Ok(Value::String(text.to_owned())),
        Value::Integer(_) => {
            text.trim().replace('_', "").parse().map(Value::Integer).map_err(|_| expected("a whole number"))
        }
        Value::Float(_) => text.trim().parse().map(Value::Float).map_err(|_| expected("a number")),
        Value::Boolean(_) => text.trim().parse().map(Value::Boolean).map_err(|_| expected("true or false")),
        Value::Array(items) if !text.trim_start().starts_with('[') => list(text, items.first()),
        Value::Array(_) => literal(text).ok_or_else(|| expected("a list, as in a,b or [\"a\", \"b\"]")),
        Value::Table(_) => literal(text)
            .filter(Value::is_table)
            .ok_or_else(|| expected("a table, as in { key = \"value\" }, or one of its keys")),
        Value::Datetime(_) => literal(text).ok_or_else(|| expected("a date and time")),
    }
}

/// Checks a value from a file against the default's type.
pub(super) fn check(value: Value, default: &Value) -> Result<Value, String> {
    match (value, default) {
        (Value::Integer(whole), Value::Float(_)) => {
            #[expect(clippy::cast_precision_loss, reason = "settings are far below 2^53")]
            let number = whole as f64;
            Ok(Value::Float(number))
        }
        (value, default) if value.same_type(default) => Ok(value),
        (value, default) => Err(format!("expected {}, found {}", default.type_str(), value.type_str())),
    }
}

/// Parses the value of a key without a default: a TOML literal, or else a string.
pub(super) fn guess(text: &str) -> Value {
    literal(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Parses `a, b`. Items have the type of the default list's first item; if that list is empty, they are strings.
fn list(text: &str, sample: Option<&Value>) -> Result<Value, String> {
    let texts = Value::String(String::new());
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| parse(item, sample.unwrap_or(&texts))).collect::<Result<_, _>>().map(Value::Array)
}

fn literal(text: &str) -> Option<Value> {
    toml::from_str::<Table>(&format!("value = {text}")).ok()?.remove("value")
}
