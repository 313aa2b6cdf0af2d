//! Which answers a form accepts.
//!
//! One function decides, for the edge that takes submissions, the control plane that edits them, and the
//! tests. What it lets through is what is stored: shown fields only, unknown keys left out.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use serde_json::{Map, Value};

use crate::Complaint;
use crate::fields::{Field, FieldType, ShowIf, compile};

/// Most characters of one text where the field says nothing.
pub const MAX_TEXT: usize = 20_000;

/// The answers to be stored, by field name.
pub type Answers = Map<String, Value>;

/// The answers a form keeps of what was `given`.
///
/// Fields hidden by `showIf` are neither checked nor kept; keys the form doesn't have are left out; an
/// empty text counts as no answer.
///
/// # Errors
/// Everything wrong, one complaint a field.
pub fn check(fields: &[Field], given: &Answers) -> Result<Answers, Vec<Complaint>> {
    let mut kept = Answers::new();
    let mut complaints = Vec::new();
    let mut shown = BTreeSet::new();
    for field in fields {
        if field.show_if.as_ref().is_some_and(|rule| !applies(rule, &shown, given)) {
            continue;
        }
        shown.insert(field.name.as_str());
        match given.get(&field.name).filter(|value| !is_blank(value)) {
            Some(value) => match check_value(field, value) {
                Ok(()) => drop(kept.insert(field.name.clone(), value.clone())),
                Err((code, message)) => complaints.push(Complaint::new(&field.name, code, message)),
            },
            None if field.required => {
                complaints.push(Complaint::new(
                    &field.name,
                    "required",
                    format!("{} is required", field.label),
                ));
            }
            None => {}
        }
    }
    if complaints.is_empty() { Ok(kept) } else { Err(complaints) }
}

/// What a browser posted, as answers: texts become what their field's type means. What can't be read as that
/// type is left a text, for [`check`] to complain about. Files can't be posted this way.
pub fn from_pairs(fields: &[Field], pairs: &BTreeMap<String, Vec<String>>) -> Answers {
    let read = |field: &Field, values: &[String]| match field.kind {
        FieldType::Multiselect => Value::from(values.to_vec()),
        FieldType::Checkbox => Value::Bool(values.iter().any(|value| value != "false" && !value.is_empty())),
        FieldType::Number => {
            let text = values.first().map_or("", String::as_str).trim();
            text.parse::<serde_json::Number>().map_or_else(|_| Value::from(text), Value::Number)
        }
        _ => Value::from(values.first().map_or("", String::as_str)),
    };
    fields
        .iter()
        .filter_map(|field| Some((field.name.clone(), read(field, pairs.get(&field.name)?))))
        .collect()
}

/// Whether a rule's other field is itself shown and has the wanted answer.
fn applies(rule: &ShowIf, shown: &BTreeSet<&str>, given: &Answers) -> bool {
    shown.contains(rule.field.as_str())
        && match given.get(&rule.field) {
            Some(Value::Array(chosen)) if !rule.equals.is_array() => chosen.contains(&rule.equals),
            Some(value) => value == &rule.equals,
            None => rule.equals == Value::Bool(false) || rule.equals.is_null(),
        }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

type Refusal = (&'static str, String);

fn check_value(field: &Field, value: &Value) -> Result<(), Refusal> {
    let label = &field.label;
    match field.kind {
        FieldType::Number => check_number(field, value),
        FieldType::Checkbox => match value {
            Value::Bool(false) if field.required => Err(("required", format!("{label} must be ticked"))),
            Value::Bool(_) => Ok(()),
            _ => Err(("type", format!("{label} must be true or false"))),
        },
        FieldType::Multiselect => {
            let chosen =
                value.as_array().ok_or_else(|| ("type", format!("{label} must be a list of options")))?;
            let distinct: BTreeSet<_> = chosen.iter().filter_map(Value::as_str).collect();
            if distinct.len() != chosen.len() {
                return Err(("option", format!("{label} must be a list of different options")));
            }
            distinct.into_iter().try_for_each(|option| check_option(field, option))
        }
        _ => {
            let text = value.as_str().ok_or_else(|| ("type", format!("{label} must be a text")))?;
            check_text(field, text)
        }
    }
}

fn check_number(field: &Field, value: &Value) -> Result<(), Refusal> {
    let label = &field.label;
    let number = value.as_f64().ok_or_else(|| ("type", format!("{label} must be a number")))?;
    match (field.min, field.max) {
        (Some(min), _) if number < min => Err(("min", format!("{label} must be at least {min}"))),
        (_, Some(max)) if number > max => Err(("max", format!("{label} must be at most {max}"))),
        _ => Ok(()),
    }
}

fn check_option(field: &Field, text: &str) -> Result<(), Refusal> {
    if field.options.iter().any(|option| option == text) {
        return Ok(());
    }
    Err(("option", format!("{} must be one of: {}", field.label, field.options.join(", "))))
}

fn check_text(field: &Field, text: &str) -> Result<(), Refusal> {
    let label = &field.label;
    let length = text.chars().count();
    let min = field.min_length.map_or(0, |n| n as usize);
    let max = field.max_length.map_or(MAX_TEXT, |n| n as usize).min(MAX_TEXT);
    if length < min {
        return Err(("too_short", format!("{label} needs at least {min} characters")));
    }
    if length > max {
        return Err(("too_long", format!("{label} may have at most {max} characters")));
    }
    // Postgres' jsonb can't hold it, and no keyboard makes it.
    if text.contains('\0') {
        return Err(("nul", format!("{label} must not contain a NUL character")));
    }
    if let Some(pattern) = &field.pattern
        && !compile(pattern).is_ok_and(|pattern| pattern.is_match(text))
    {
        return Err(("pattern", format!("{label} does not have the expected form")));
    }
    match field.kind {
        FieldType::Select => check_option(field, text),
        FieldType::Email if !is_email(text) => Err(("email", format!("{label} must be an e-mail address"))),
        FieldType::Url if !is_web_address(text) => Err(("url", format!("{label} must be a http(s) address"))),
        FieldType::Date if NaiveDate::parse_from_str(text, "%Y-%m-%d").is_err() || length != 10 => {
            Err(("date", format!("{label} must be a day, YYYY-MM-DD")))
        }
        FieldType::Tel if !text.chars().all(|c| c.is_ascii_digit() || " +-()./x#*".contains(c)) => {
            Err(("tel", format!("{label} must be a telephone number")))
        }
        _ => Ok(()),
    }
}

/// The HTML standard's rule for `<input type=email>`, so that browser and server agree; plus a dot in the
/// domain and RFC 5321's 254 characters.
pub(crate) fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let in_local = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let local_fits = !local.is_empty() && local.chars().all(in_local);
    text.len() <= 254 && local_fits && domain.contains('.') && domain.split('.').all(is_label)
}

fn is_web_address(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(field: Value, answer: Value) -> Result<(), &'static str> {
        let field: Field = serde_json::from_value(field).unwrap();
        let given = json!({ "a": answer });
        match check(&[field], given.as_object().unwrap()) {
            Ok(_) => Ok(()),
            Err(complaints) => Err(complaints[0].code),
        }
    }

    #[test]
    fn each_type_takes_its_own_kind_of_answer() {
        let of = |kind: &str| json!({"name": "a", "label": "A", "type": kind, "required": true});
        let choice = |kind: &str| json!({"name": "a", "label": "A", "type": kind, "options": ["x", "y"]});
        let cases = [
            (of("text"), json!("x"), Ok(())),
            (of("text"), json!(""), Err("required")),
            (of("text"), json!(" \n"), Err("required")),
            (of("text"), json!(3), Err("type")),
            (of("text"), json!("a\0b"), Err("nul")),
            (of("email"), json!("a@b.co"), Ok(())),
            (of("email"), json!("a@b"), Err("email")),
            (of("email"), json!("a b@c.de"), Err("email")),
            (of("number"), json!(3.5), Ok(())),
            (of("number"), json!("3.5"), Err("type")),
            (of("checkbox"), json!(true), Ok(())),
            (of("checkbox"), json!(false), Err("required")),
            (of("url"), json!("https://x.test/a?b"), Ok(())),
            (of("url"), json!("javascript:alert(1)"), Err("url")),
            (of("tel"), json!("+49 (30) 123-45"), Ok(())),
            (of("tel"), json!("call me"), Err("tel")),
            (of("date"), json!("2028-02-29"), Ok(())),
            (of("date"), json!("2027-02-29"), Err("date")),
            (of("date"), json!("2027-2-9"), Err("date")),
            (choice("select"), json!("x"), Ok(())),
            (choice("select"), json!("z"), Err("option")),
            (choice("multiselect"), json!(["y", "x"]), Ok(())),
            (choice("multiselect"), json!(["x", "x"]), Err("option")),
            (choice("multiselect"), json!(["z"]), Err("option")),
            (choice("multiselect"), json!("x"), Err("type")),
        ];
        for (field, answer, verdict) in cases {
            assert_eq!(judge(field.clone(), answer.clone()), verdict, "{field} {answer}");
        }
    }

    #[test]
    fn limits_are_inclusive() {
        let text = json!({"name": "a", "label": "A", "type": "text", "minLength": 2, "maxLength": 3});
        let number = json!({"name": "a", "label": "A", "type": "number", "min": 0, "max": 5});
        assert_eq!(judge(text.clone(), json!("é")), Err("too_short"));
        assert_eq!(judge(text.clone(), json!("éé")), Ok(()));
        assert_eq!(judge(text, json!("abcd")), Err("too_long"));
        assert_eq!(judge(number.clone(), json!(5)), Ok(()));
        assert_eq!(judge(number.clone(), json!(5.01)), Err("max"));
        assert_eq!(judge(number, json!(-1)), Err("min"));
    }

    #[test]
    fn a_pattern_is_for_the_whole_text() {
        let field = json!({"name": "a", "label": "A", "type": "text", "pattern": "[a-z]+|1"});
        assert_eq!(judge(field.clone(), json!("abc")), Ok(()));
        assert_eq!(judge(field, json!("abc1")), Err("pattern"));
    }

    #[test]
    fn hidden_fields_are_neither_checked_nor_kept_along_the_whole_chain() {
        let fields: Vec<Field> = serde_json::from_value(json!([
            {"name": "a", "label": "A", "type": "checkbox"},
            {"name": "b", "label": "B", "type": "text", "required": true, "showIf": {"field": "a", "equals": true}},
            {"name": "c", "label": "C", "type": "text", "required": true, "showIf": {"field": "b", "equals": "x"}},
        ]))
        .unwrap();
        let judge = |given: Value| check(&fields, given.as_object().unwrap());
        assert_eq!(judge(json!({"a": false, "b": "x", "c": "y"})).unwrap().len(), 1);
        assert_eq!(judge(json!({"a": true, "b": "z"})).unwrap().len(), 2);
        assert_eq!(judge(json!({"a": true, "b": "x"})).unwrap_err()[0].field, "c");
        assert_eq!(judge(json!({})).unwrap().len(), 0);
    }

    #[test]
    fn a_browsers_texts_become_what_their_fields_mean() {
        let fields: Vec<Field> = serde_json::from_value(json!([
            {"name": "n", "label": "N", "type": "number"},
            {"name": "c", "label": "C", "type": "checkbox"},
            {"name": "m", "label": "M", "type": "multiselect", "options": ["x", "y"]},
            {"name": "t", "label": "T", "type": "text"},
        ]))
        .unwrap();
        let pairs = |pairs: &[(&str, &[&str])]| {
            let owned = |values: &[&str]| values.iter().map(ToString::to_string).collect();
            pairs.iter().map(|(name, values)| (name.to_string(), owned(values))).collect()
        };
        let posted = from_pairs(
            &fields,
            &pairs(&[("n", &["2.5"]), ("c", &["true"]), ("m", &["x", "y"]), ("t", &["z"])]),
        );
        assert_eq!(Value::Object(posted), json!({"n": 2.5, "c": true, "m": ["x", "y"], "t": "z"}));
        let posted = from_pairs(&fields, &pairs(&[("n", &["two"]), ("other", &["1"])]));
        assert_eq!(check(&fields, &posted).unwrap_err()[0].code, "type");
    }

    #[test]
    fn unknown_keys_are_not_kept() {
        let fields: Vec<Field> =
            serde_json::from_value(json!([{"name": "a", "label": "A", "type": "text"}])).unwrap();
        let given = json!({"a": "x", "is_admin": true});
        assert_eq!(Value::Object(check(&fields, given.as_object().unwrap()).unwrap()), json!({"a": "x"}));
    }
}
