//! Converts the texts of a submitted form to answers by the type of their field.
//!
//! A browser sends every value as a text, and so does a script that makes JSON of a form: `"7"` for a number, `"on"` for a
//! checkbox, `"x"` for one choice of several. Both bodies give the same answers, with two exceptions for JSON, which people
//! also write by hand: a checkbox takes `"no"` for no, and several texts for a field with one value are not cut to the
//! first. What can't be converted stays as it is, and [`super::check`] rejects it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Answers;
use crate::fields::{Field, FieldType};

/// Texts of JSON bodies for a ticked checkbox, in lower case. A hosted form sends `true`, and browsers send `on` by default.
const TICKED: [&str; 4] = ["on", "true", "1", "yes"];
/// Texts of JSON bodies for one that is not ticked.
const NOT_TICKED: [&str; 5] = ["", "false", "off", "no", "0"];

/// Converts the values of an HTML form. Files can't be submitted this way.
pub fn from_form_data(fields: &[Field], pairs: &BTreeMap<String, Vec<String>>) -> Answers {
    let read = |field: &Field| from_texts(field, pairs.get(&field.name)?.iter().map(String::as_str));
    answers(fields, read)
}

/// Converts the members of a JSON object: texts and lists of texts like those of an HTML form; other values stay.
pub fn from_json(fields: &[Field], given: &Answers) -> Answers {
    let read = |field: &Field| {
        let value = given.get(&field.name)?;
        Some(from_json_texts(field, value).unwrap_or_else(|| value.clone()))
    };
    answers(fields, read)
}

/// Converts a text or a list of texts; `None` if it is neither, or the field can't have them.
fn from_json_texts(field: &Field, value: &Value) -> Option<Value> {
    let texts: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    match (field.kind, texts.len()) {
        (FieldType::Multiselect, _) | (_, 1) if field.kind != FieldType::Checkbox => {
            from_texts(field, texts.into_iter())
        }
        // Several are those of the box and of a hidden companion.
        (FieldType::Checkbox, _) => {
            let ticked: Option<Vec<bool>> = texts.into_iter().map(is_ticked).collect();
            ticked.map(|ticked| Value::Bool(ticked.contains(&true)))
        }
        (_, 0) => Some(Value::Null),
        _ => None,
    }
}

fn is_ticked(text: &str) -> Option<bool> {
    let is_one_of = |words: &[&str]| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
    if is_one_of(&TICKED) { Some(true) } else { is_one_of(&NOT_TICKED).then_some(false) }
}

fn answers(fields: &[Field], read: impl Fn(&Field) -> Option<Value>) -> Answers {
    fields.iter().filter_map(|field| Some((field.name.clone(), read(field)?))).collect()
}

/// Converts the texts that were sent for one field; `None` if there are none.
fn from_texts<'a>(field: &Field, mut texts: impl Iterator<Item = &'a str>) -> Option<Value> {
    Some(match field.kind {
        // An empty one is the companion of a list in which nothing is chosen; no option is blank.
        FieldType::Multiselect => texts.filter(|text| !text.trim().is_empty()).map(Value::from).collect(),
        FieldType::Checkbox => Value::Bool(texts.any(|text| !matches!(text.trim(), "" | "false"))),
        FieldType::Number => read_number(texts.next()?.trim()),
        _ => Value::from(texts.next()?),
    })
}

/// Parses a number as browsers write it, including `.5` and `+1`; any other text stays a text.
fn read_number(text: &str) -> Value {
    let is_written_so = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    // Integers first: a float represents only 53 bits of them.
    let whole = || text.parse::<serde_json::Number>().ok();
    let float = || {
        let float = text.chars().all(is_written_so).then(|| text.parse().ok())?;
        float.and_then(serde_json::Number::from_f64)
    };
    whole().or_else(float).map_or_else(|| Value::from(text), Value::Number)
}
