//! Conversions between JSON and rhai's values, without loss in either direction.

use std::fmt::Write as _;

use rhai::{Array, Dynamic, Map};
use serde_json::{Number, Value};

use super::error::ExpressionError;
use super::truth;

/// Converts a JSON value.
pub(super) fn from_json(value: &Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(bool) => (*bool).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(list) => list.iter().map(from_json).collect::<Array>().into(),
        Value::Object(object) => {
            let members = object.iter().map(|(name, value)| (name.as_str().into(), from_json(value)));
            members.collect::<Map>().into()
        }
    }
}

/// Converts a result. A number that JSON has no notation for, and a range, are errors.
pub(super) fn to_json(value: &Dynamic) -> Result<Value, ExpressionError> {
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(bool) = value.as_bool() {
        return Ok(Value::Bool(bool));
    }
    if let Ok(whole) = value.as_int() {
        return Ok(Value::from(whole));
    }
    if let Ok(float) = value.as_float() {
        let number = Number::from_f64(float).map(Value::Number);
        return number.ok_or_else(|| ExpressionError("the result is not a finite number".to_owned()));
    }
    if let Ok(char) = value.as_char() {
        return Ok(Value::String(char.to_string()));
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        return Ok(Value::String(text.to_string()));
    }
    if let Ok(list) = value.as_array_ref() {
        return list.iter().map(to_json).collect::<Result<_, _>>().map(Value::Array);
    }
    if let Ok(object) = value.as_map_ref() {
        let members = object.iter().map(|(name, value)| Ok((name.to_string(), to_json(value)?)));
        return members.collect::<Result<_, _>>().map(Value::Object);
    }
    Err(ExpressionError("the result has no JSON form".to_owned()))
}

/// Returns the text of a value: null is empty, lists and objects are JSON.
pub(super) fn to_text(value: &Dynamic) -> Result<String, String> {
    if let Ok(text) = value.as_immutable_string_ref() {
        return Ok(text.to_string());
    }
    to_json(value).map(|value| text_of(&value)).map_err(|error| error.0)
}

/// Returns the text of a value, as templates write it: null is empty, lists and objects are JSON.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => whole(number).map_or_else(|| number.to_string(), |whole| whole.to_string()),
        other => other.to_string(),
    }
}

/// Returns a float without a fraction as a whole number: rounded prices are `90`, not `90.0`.
fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    #[expect(clippy::cast_possible_truncation, reason = "a float of that size is a whole number exactly")]
    (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
}

/// Returns whether a value is nested deeper than `levels`.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Value::Array(list) => list.iter().any(|value| is_deeper(value, below)),
        Value::Object(object) => object.values().any(|value| is_deeper(value, below)),
        _ => false,
    }
}

/// Upper bound of the bytes that a value takes as a rhai value.
pub(super) fn json_weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
        Value::String(text) => 64 + text.len(),
        Value::Array(list) => 64 + list.iter().map(json_weight).sum::<usize>(),
        Value::Object(object) => {
            64 + object.iter().map(|(name, value)| 64 + name.len() + json_weight(value)).sum::<usize>()
        }
    }
}

/// Upper bound of the bytes that a value takes.
pub(super) fn weight(value: &Dynamic) -> usize {
    if let Ok(text) = value.as_immutable_string_ref() {
        return 64 + text.len();
    }
    if let Ok(list) = value.as_array_ref() {
        return 64 + list.iter().map(weight).sum::<usize>();
    }
    if let Ok(object) = value.as_map_ref() {
        return 64 + object.iter().map(|(name, value)| 64 + name.len() + weight(value)).sum::<usize>();
    }
    16
}

/// Returns whether a value counts as true, like [`truth::is_true`].
pub(super) fn is_true(value: &Dynamic) -> bool {
    if let Ok(text) = value.as_immutable_string_ref() {
        return !text.is_empty();
    }
    if let Ok(list) = value.as_array_ref() {
        return !list.is_empty();
    }
    if let Ok(object) = value.as_map_ref() {
        return !object.is_empty();
    }
    to_json(value).is_ok_and(|value| truth::is_true(&value))
}

/// Compares two values in depth; 1 equals 1.0.
pub(super) fn equal(a: &Dynamic, b: &Dynamic) -> bool {
    if let (Ok(a), Ok(b)) = (a.as_array_ref(), b.as_array_ref()) {
        return a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b));
    }
    if let (Ok(a), Ok(b)) = (a.as_map_ref(), b.as_map_ref()) {
        return a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.0 == b.0 && equal(a.1, b.1));
    }
    if let (Ok(a), Ok(b)) = (a.as_immutable_string_ref(), b.as_immutable_string_ref()) {
        return *a == *b;
    }
    if a.is_char() || b.is_char() {
        return single_char(a).is_some_and(|char| single_char(b) == Some(char));
    }
    // As floats, different large whole numbers would be equal.
    if let (Ok(a), Ok(b)) = (a.as_int(), b.as_int()) {
        return a == b;
    }
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return a == b;
    }
    if let (Ok(a), Ok(b)) = (a.as_bool(), b.as_bool()) {
        return a == b;
    }
    a.is_unit() && b.is_unit()
}

/// Returns the character of a text that has only one; indexing a text yields a character.
fn single_char(value: &Dynamic) -> Option<char> {
    let text = value.as_immutable_string_ref().ok();
    let mut chars = text.iter().flat_map(|text| text.chars());
    value.as_char().ok().or_else(|| chars.next().filter(|_| chars.next().is_none()))
}

/// Writes a text that equal values share, and only they.
pub(super) fn write_key(value: &Dynamic, key: &mut String) -> std::fmt::Result {
    if let Ok(text) = value.as_immutable_string_ref() {
        return write!(key, "{:?}", text.as_str());
    }
    if let Ok(char) = value.as_char() {
        return write!(key, "{:?}", char.to_string());
    }
    if let Ok(whole) = value.as_int() {
        return write!(key, "{whole}");
    }
    if let Ok(float) = value.as_float() {
        #[expect(clippy::cast_possible_truncation, reason = "a float of that size is a whole number exactly")]
        let whole = (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64);
        return match whole {
            Some(whole) => write!(key, "{whole}"),
            None => write!(key, "{float:?}"),
        };
    }
    if let Ok(list) = value.as_array_ref() {
        key.push('[');
        for element in list.iter() {
            write_key(element, key)?;
            key.push(',');
        }
        key.push(']');
        return Ok(());
    }
    if let Ok(object) = value.as_map_ref() {
        key.push('{');
        for (name, member) in object.iter() {
            write!(key, "{:?}:", name.as_str())?;
            write_key(member, key)?;
            key.push(',');
        }
        key.push('}');
        return Ok(());
    }
    write!(key, "{value:?}")
}

/// Returns a number as a float.
pub(super) fn number(value: &Dynamic) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "mixed numbers are compared as floats, as rhai does")]
    value.as_int().map(|whole| whole as f64).or_else(|_| value.as_float()).ok()
}
