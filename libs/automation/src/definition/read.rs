//! Reads definitions with errors for people: the path of each wrong member, and what would be right.
//!
//! serde's own reading of tagged enums forgets the path and names no similar word, so this module dispatches on `type`
//! itself and leaves to serde only objects without steps.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::{FIELD_ERRORS_MAX, FieldError, parser_messages};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::automation::AutomationDefinition;
use super::kinds::{Kind, ReadError, read_as};
use super::schema::{SHAPES, Shape};
use super::step::{Action, Branch, ConditionStep, Step};
use super::trigger::Trigger;

type Errors = Vec<FieldError>;

impl AutomationDefinition {
    /// Parses the object `{trigger, steps, concurrency?}`.
    ///
    /// # Errors
    /// Every unknown field, unknown type and value of a wrong type, with paths such as `steps[2].url`.
    pub fn read(value: &Value) -> Result<Self, Vec<FieldError>> {
        definition(value)
    }
}

impl<'de> Deserialize<'de> for AutomationDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        definition(&Value::deserialize(deserializer)?).map_err(first_error)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        one_step(&Value::deserialize(deserializer)?).map_err(first_error)
    }
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        one_trigger(&Value::deserialize(deserializer)?).map_err(first_error)
    }
}

/// Reads a whole definition.
fn definition(value: &Value) -> Result<AutomationDefinition, Errors> {
    let mut errors = Errors::new();
    let shape = Shape {
        members: ["trigger", "steps", "concurrency"].map(str::to_owned).to_vec(),
        required: ["trigger", "steps"].map(str::to_owned).to_vec(),
    };
    let Some(object) = object(value, "", &shape, &mut errors) else { return Err(errors) };
    let started = object.get("trigger").and_then(|value| trigger(value, &mut errors));
    let steps = object.get("steps").map(|value| steps(value, "steps", &mut errors));
    let concurrency = object.get("concurrency").filter(|value| !value.is_null()).and_then(|value| {
        self::object(value, "concurrency", &SHAPES.concurrency, &mut errors)?;
        value_or_error(read_as(value.clone()), "concurrency", &mut errors)
    });
    errors.truncate(FIELD_ERRORS_MAX);
    match (started, steps) {
        (Some(trigger), Some(steps)) if errors.is_empty() => {
            Ok(AutomationDefinition { trigger, steps, concurrency })
        }
        _ => Err(errors),
    }
}

/// Reads one step.
fn one_step(value: &Value) -> Result<Step, Errors> {
    let mut errors = Errors::new();
    step(value, "step", &mut errors).filter(|_| errors.is_empty()).ok_or(errors)
}

/// Reads the trigger.
fn one_trigger(value: &Value) -> Result<Trigger, Errors> {
    let mut errors = Errors::new();
    trigger(value, &mut errors).filter(|_| errors.is_empty()).ok_or(errors)
}

/// Returns the first error as one of serde's.
fn first_error<E: serde::de::Error>(errors: Errors) -> E {
    E::custom(errors.into_iter().next().map_or_else(|| "invalid".to_owned(), |error| error.message))
}

fn trigger(value: &Value, errors: &mut Errors) -> Option<Trigger> {
    let path = "trigger";
    let (kind, shape) = kind_of("trigger", value, path, Trigger::KINDS, &SHAPES.triggers, errors)?;
    let mut object = object(value, path, shape, errors)?.clone();
    object.shift_remove("type");
    value_or_error((kind.read)(Value::Object(object)), path, errors)
}

fn steps(value: &Value, path: &str, errors: &mut Errors) -> Vec<Step> {
    let Value::Array(steps) = value else {
        errors.push(wrong_type(path, "a list of steps", value));
        return Vec::new();
    };
    let each = steps.iter().enumerate();
    each.filter_map(|(at, value)| step(value, &format!("{path}[{at}]"), errors)).collect()
}

fn step(value: &Value, path: &str, errors: &mut Errors) -> Option<Step> {
    if errors.len() >= FIELD_ERRORS_MAX {
        return None;
    }
    let (kind, shape) = kind_of("step", value, path, Action::KINDS, &SHAPES.steps, errors)?;
    let object = object(value, path, shape, errors)?;
    let (mut common, mut own) = (Map::new(), Map::new());
    for (name, member) in object {
        let nested = matches!((kind.word, name.as_str()), ("for_each", "steps") | ("condition", _));
        if SHAPES.options.members.contains(name) {
            common.insert(name.clone(), member.clone());
        } else if !nested && name != "type" {
            own.insert(name.clone(), member.clone());
        }
    }
    let options = value_or_error(read_as(Value::Object(common)), path, errors);
    let action = if kind.word == "condition" {
        Some(Action::Condition(condition(object, path, errors)))
    } else {
        if kind.word == "for_each" {
            own.insert("steps".to_owned(), Value::Array(Vec::new()));
        }
        value_or_error((kind.read)(Value::Object(own)), path, errors)
    };
    let mut step = Step { options: options?, action: action? };
    if let (Action::ForEach(each), Some(value)) = (&mut step.action, object.get("steps")) {
        each.steps = steps(value, &format!("{path}.steps"), errors);
    }
    Some(step)
}

fn condition(object: &Map<String, Value>, path: &str, errors: &mut Errors) -> ConditionStep {
    let mut branches = Vec::new();
    match object.get("branches") {
        Some(Value::Array(values)) => {
            for (at, value) in values.iter().enumerate() {
                branches.extend(branch(value, &format!("{path}.branches[{at}]"), errors));
            }
        }
        Some(other) => errors.push(wrong_type(&format!("{path}.branches"), "a list of branches", other)),
        None => {}
    }
    let otherwise = object.get("else").map(|value| steps(value, &format!("{path}.else"), errors));
    ConditionStep { branches, otherwise: otherwise.unwrap_or_default() }
}

fn branch(value: &Value, path: &str, errors: &mut Errors) -> Option<Branch> {
    let object = object(value, path, &SHAPES.branch, errors)?;
    let condition = match object.get("if")? {
        Value::String(condition) => condition.clone(),
        other => {
            errors.push(wrong_type(&format!("{path}.if"), "a text, an expression without braces", other));
            return None;
        }
    };
    Some(Branch { condition, steps: steps(object.get("steps")?, &format!("{path}.steps"), errors) })
}

/// Finds the type that an object names.
fn kind_of<T>(
    noun: &str,
    value: &Value,
    path: &str,
    kinds: &'static [Kind<T>],
    shapes: &'static BTreeMap<&'static str, Shape>,
    errors: &mut Errors,
) -> Option<(&'static Kind<T>, &'static Shape)> {
    let Value::Object(object) = value else {
        errors.push(wrong_type(path, "an object", value));
        return None;
    };
    let words = || kinds.iter().map(|kind| kind.word);
    let field = format!("{path}.type");
    match object.get("type") {
        Some(Value::String(word)) => {
            let found = kinds.iter().find(|kind| kind.word == word).zip(shapes.get(word.as_str()));
            if found.is_none() {
                let hint = did_you_mean(word, words());
                let message = format!("{field}: unknown {noun} type \"{}\"{hint}", shorten(word));
                errors.push(FieldError::new(field, "unknown_type", message));
            }
            found
        }
        other => {
            let all = words().collect::<Vec<_>>().join(", ");
            let code = if other.is_some() { "type" } else { "required" };
            errors.push(FieldError::new(&field, code, format!("{field} is required: one of {all}")));
            None
        }
    }
}

/// Checks that a value is an object with the members of its shape.
fn object<'a>(
    value: &'a Value,
    path: &str,
    shape: &Shape,
    errors: &mut Errors,
) -> Option<&'a Map<String, Value>> {
    let Value::Object(object) = value else {
        errors.push(wrong_type(if path.is_empty() { "body" } else { path }, "an object", value));
        return None;
    };
    for name in object.keys().filter(|name| !shape.members.contains(name)).take(FIELD_ERRORS_MAX) {
        // A path must name something, even if the author's name is empty.
        let shown = if name.is_empty() { "\"\"".to_owned() } else { shorten(name) };
        let field = below(path, &shown);
        let hint = did_you_mean(name, shape.members.iter().map(String::as_str));
        errors.push(FieldError::new(&field, "unknown_field", format!("{field} is not a field here{hint}")));
    }
    for name in shape.required.iter().filter(|name| !object.contains_key(*name)) {
        let field = below(path, name);
        errors.push(FieldError::new(&field, "required", format!("{field} is required")));
    }
    Some(object)
}

/// Returns the value, or pushes serde's error with its path. A missing or unknown member directly in the object has
/// been reported already.
fn value_or_error<T>(result: Result<T, ReadError>, path: &str, errors: &mut Errors) -> Option<T> {
    let error = match result {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    let inner = error.path().to_string();
    let inner = if inner == "." || inner == "?" { String::new() } else { inner };
    let message = error.inner().to_string();
    let named = message.split('`').nth(1).unwrap_or_default();
    let is_missing = message.starts_with("missing field");
    if is_missing || message.starts_with("unknown field") {
        let parent = inner.strip_suffix(named).map_or(&inner[..], |parent| parent.trim_end_matches('.'));
        if !parent.is_empty() {
            let field = below(&below(path, parent), &shorten(named));
            let expected = message.split_once(", ").map(|(_, rest)| format!(": {rest}")).unwrap_or_default();
            errors.push(if is_missing {
                FieldError::new(&field, "required", format!("{field} is required"))
            } else {
                FieldError::new(&field, "unknown_field", format!("{field} is not a field here{expected}"))
            });
        }
        return None;
    }
    let field = below(path, &inner);
    errors.push(FieldError::new(&field, "type", parser_messages::sentence(&field, &message)));
    None
}

fn wrong_type(path: &str, expected: &str, value: &Value) -> FieldError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    FieldError::new(path, "type", format!("{path} must be {expected}, this is {found}"))
}

fn below(path: &str, name: &str) -> String {
    match (path, name) {
        ("", name) => name.to_owned(),
        (path, "") => path.to_owned(),
        (path, name) if name.starts_with('[') => format!("{path}{name}"),
        (path, name) => format!("{path}.{name}"),
    }
}

/// Returns `; did you mean X?` with the most similar word, or the list of all.
pub(crate) fn did_you_mean<'a>(word: &str, words: impl Iterator<Item = &'a str> + Clone) -> String {
    let word = shorten(word).to_lowercase();
    let similarity = |known: &str| strsim::jaro_winkler(&word, &known.to_lowercase());
    let best = words.clone().map(|known| (similarity(known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((similarity, known)) if similarity > 0.8 => format!("; did you mean {known}?"),
        _ => {
            let mut text = "; known are ".to_owned();
            for (at, known) in words.enumerate() {
                let _ = write!(text, "{}{known}", if at == 0 { "" } else { ", " });
            }
            text
        }
    }
}

fn shorten(word: &str) -> String {
    word.chars().take(64).collect()
}
