//! All wrong types of a request at once. serde stops at the first; this checks the rest against the request's schema, and
//! only after serde has failed, so that a valid request costs nothing.
//!
//! Limits, such as a maximum length, are not checked here: the handler reports those by rules of its own.

use std::borrow::Cow;
use std::collections::BTreeSet;

use domain::FieldError;
use schemars::JsonSchema;
use serde_json::Value;
use uuid::Uuid;

use super::messages::{self, is_time};
use super::query_text::boolean;
use super::schema::{Expected, RequestSchema};

/// Upper bound of the errors of one request, which may hold a million wrong items.
const ERRORS_MAX: usize = 200;
/// Upper bound of the bodies that are checked: in memory one is several times as large.
const CHECKED_BYTES_MAX: usize = 4 << 20;

/// Returns the errors of a JSON text, of which serde reported `first`.
pub(super) fn of_json<T: JsonSchema>(json: &[u8], first: FieldError) -> Vec<FieldError> {
    let parsed = Some(json).filter(|json| json.len() <= CHECKED_BYTES_MAX).map(serde_json::from_slice);
    match parsed {
        Some(Ok(value)) => of_value::<T>(&value, first),
        _ => vec![first],
    }
}

/// Returns the errors of a JSON value, of which serde reported `first`.
pub(super) fn of_value<T: JsonSchema>(value: &Value, first: FieldError) -> Vec<FieldError> {
    let schema = RequestSchema::of::<T>();
    let mut check = Check { schema: &schema, errors: Vec::new() };
    check.value(schema.root(), value, "");
    with(first, check.errors)
}

/// Returns the errors of a query string, of which serde reported `first`.
pub(super) fn of_query<'a, T: JsonSchema>(
    pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    first: FieldError,
) -> Vec<FieldError> {
    let schema = RequestSchema::of::<T>();
    let mut check = Check { schema: &schema, errors: Vec::new() };
    let mut names = BTreeSet::new();
    let refuses_others = schema.root().get("additionalProperties") == Some(&Value::Bool(false));
    for (name, text) in pairs {
        match schema.root().get("properties").and_then(|all| all.get(&*name)) {
            Some(_) if names.contains(&*name) => {
                check.push(&name, "duplicate", format!("{name} is given twice"));
            }
            Some(parameter) => check.text(parameter, &text, &name),
            None if refuses_others => {
                check.push(&name, "unknown_field", format!("{name} is not a parameter of this request"));
            }
            None => {}
        }
        names.insert(name.into_owned());
    }
    check.required(schema.root(), "", |name| names.contains(name));
    with(first, check.errors)
}

/// Adds the error of serde unless the schema's say the same, or say more exactly where.
fn with(first: FieldError, mut errors: Vec<FieldError>) -> Vec<FieldError> {
    let is_within = |path: &str| {
        path.strip_prefix(&*first.field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let is_known =
        errors.iter().any(|error| is_within(&error.field)) || (first.field == "body" && !errors.is_empty());
    if !is_known {
        errors.insert(0, first);
    }
    errors
}

struct Check<'a> {
    schema: &'a RequestSchema,
    errors: Vec<FieldError>,
}

impl Check<'_> {
    fn push(&mut self, path: &str, code: &'static str, message: String) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(FieldError::new(path, code, message));
        }
    }

    fn wrong_type(&mut self, path: &str, expected: &Expected, value: &Value) {
        let field = if path.is_empty() { "body" } else { path };
        self.push(field, "type", messages::wrong_type(field, expected, messages::kind(value)));
    }

    fn value(&mut self, schema: &Value, value: &Value, path: &str) {
        if self.errors.len() >= ERRORS_MAX || (value.is_null() && self.schema.allows_null(schema)) {
            return;
        }
        let schema = self.schema.resolve(schema);
        let Some(expected) = self.schema.expected(schema) else {
            return self.union(schema, value, path);
        };
        match (&expected, value) {
            (Expected::Text, Value::String(_))
            | (Expected::Number, Value::Number(_))
            | (Expected::Boolean, Value::Bool(_)) => {}
            (Expected::Id | Expected::Time | Expected::OneOf(_), Value::String(text)) => {
                self.text(schema, text, path);
            }
            (Expected::WholeNumber, Value::Number(number)) => {
                let whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
                let range = range_of(schema);
                if !whole || number.as_f64().is_some_and(|number| number < range.0 || number > range.1) {
                    self.wrong_number(schema, path, whole);
                }
            }
            (Expected::List, Value::Array(items)) => {
                let Some(of) = schema.get("items") else { return };
                for (at, item) in items.iter().enumerate() {
                    self.value(of, item, &format!("{path}[{at}]"));
                }
            }
            (Expected::Object, Value::Object(members)) => {
                for (name, member) in members {
                    let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    match (
                        schema.get("properties").and_then(|all| all.get(name)),
                        schema.get("additionalProperties"),
                    ) {
                        (Some(of), _) => self.value(of, member, &place),
                        (None, Some(Value::Bool(false))) => {
                            let message = format!("{place} is not a field of this request");
                            self.push(&place, "unknown_field", message);
                        }
                        (None, Some(of)) => self.value(of, member, &place),
                        (None, None) => {}
                    }
                }
                self.required(schema, path, |name| members.contains_key(name));
            }
            (expected, value) => self.wrong_type(path, expected, value),
        }
    }

    /// Checks a value of one of several types: objects that a constant member tells apart, or anything that fits.
    fn union(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(choices) = self.schema.choices(schema) else { return };
        let constants = |choice: &Value| -> Vec<(String, String)> {
            let members = choice.get("properties").and_then(Value::as_object);
            let constant =
                |(name, of): (&String, &Value)| Some((name.clone(), of.get("const")?.as_str()?.to_owned()));
            members.into_iter().flatten().filter_map(constant).collect()
        };
        let tag =
            choices.first().and_then(|choice| constants(choice).into_iter().next()).map(|(name, _)| name);
        let word = |choice: &Value| {
            let of = constants(choice).into_iter().find(|(name, _)| Some(name) == tag.as_ref());
            of.map(|(_, word)| word)
        };
        let words: Vec<String> = choices.iter().filter_map(|choice| word(choice)).collect();
        let Some(tag) = tag.as_ref().filter(|_| words.len() == choices.len()) else { return };
        let Some(members) = value.as_object() else {
            return self.wrong_type(path, &Expected::Object, value);
        };
        let place = if path.is_empty() { tag.clone() } else { format!("{path}.{tag}") };
        match members.get(tag) {
            None => self.push(&place, "required", format!("{place} is required")),
            Some(Value::String(given)) if words.contains(given) => {
                let chosen = choices.iter().find(|choice| word(choice).as_ref() == Some(given));
                if let Some(chosen) = chosen {
                    self.value(chosen, value, path);
                }
            }
            Some(Value::String(_)) => {
                self.push(&place, "type", messages::wrong_text(&place, &Expected::OneOf(words)));
            }
            Some(other) => self.wrong_type(&place, &Expected::OneOf(words), other),
        }
    }

    /// Checks a text: of JSON, if a text is expected, or of a query string, where everything is a text.
    fn text(&mut self, schema: &Value, text: &str, path: &str) {
        let schema = self.schema.resolve(schema);
        let Some(expected) = self.schema.expected(schema) else { return };
        let range = range_of(schema);
        let is_valid = match &expected {
            Expected::Text | Expected::List | Expected::Object => true,
            Expected::Id => Uuid::parse_str(text).is_ok(),
            Expected::Time => is_time(text),
            Expected::Boolean => boolean(text).is_some(),
            Expected::Number => text.parse::<f64>().is_ok(),
            Expected::WholeNumber => {
                let number = text.parse::<i64>();
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "the ranges are those of small types or of i64"
                )]
                if number
                    .as_ref()
                    .is_ok_and(|number| (*number as f64) < range.0 || (*number as f64) > range.1)
                {
                    return self.wrong_number(schema, path, true);
                }
                number.is_ok()
            }
            Expected::OneOf(words) => words.iter().any(|word| word == text),
        };
        if !is_valid {
            self.push(path, "type", messages::wrong_text(path, &expected));
        }
    }

    fn wrong_number(&mut self, schema: &Value, path: &str, is_whole: bool) {
        let limit = |name: &str| schema.get(name).and_then(Value::as_i64);
        let limits = match (limit("minimum"), limit("maximum")) {
            (Some(min), Some(max)) if is_whole => format!(" from {min} to {max}"),
            (Some(min), None) if is_whole => format!(" of at least {min}"),
            _ => String::new(),
        };
        self.push(path, "type", format!("{path} must be a whole number{limits}"));
    }

    fn required(&mut self, schema: &Value, path: &str, is_given: impl Fn(&str) -> bool) {
        let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in names.filter_map(Value::as_str).filter(|name| !is_given(name)) {
            let place = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            self.push(&place, "required", format!("{place} is required"));
        }
    }
}

/// The smallest and largest number of the integer type behind a schema; its limits may be narrower.
fn range_of(schema: &Value) -> (f64, f64) {
    match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => (0.0, 255.0),
        Some("uint16") => (0.0, 65_535.0),
        Some("uint32") => (0.0, 4_294_967_295.0),
        Some("uint64" | "uint") => (0.0, 1.8e19),
        Some("int32") => (-2_147_483_648.0, 2_147_483_647.0),
        _ => (-9.3e18, 9.3e18),
    }
}
