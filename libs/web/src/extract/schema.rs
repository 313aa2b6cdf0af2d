//! The schema of a request, as the checks of [`super::wrong_types`] read it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// A schema and the definitions that it refers to.
pub(super) struct RequestSchema(Value);

/// What a value must be, in the terms of a caller.
pub(super) enum Expected {
    Text,
    Id,
    Time,
    WholeNumber,
    Number,
    Boolean,
    List,
    Object,
    OneOf(Vec<String>),
}

impl RequestSchema {
    pub(super) fn of<T: JsonSchema>() -> Self {
        Self(SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value())
    }

    pub(super) fn root(&self) -> &Value {
        &self.0
    }

    /// Follows references, and takes the only choice beside null.
    pub(super) fn resolve<'a>(&'a self, mut schema: &'a Value) -> &'a Value {
        // Definitions may refer to each other, but not to themselves alone.
        for _ in 0..8 {
            let definition =
                schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
            let next = match definition.and_then(|pointer| self.0.pointer(pointer)) {
                Some(definition) => Some(definition),
                None => only_choice(schema),
            };
            match next {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }

    /// Returns the choices of a union that is not just a value or null.
    pub(super) fn choices<'a>(&'a self, schema: &'a Value) -> Option<Vec<&'a Value>> {
        let choices = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
        Some(choices.iter().map(|choice| self.resolve(choice)).collect())
    }

    /// Returns whether null is allowed.
    pub(super) fn allows_null(&self, schema: &Value) -> bool {
        let is_null = |kind: &Value| kind == "null";
        let named = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(is_null),
            Some(kind) => is_null(kind),
            None => {
                schema.get("$ref").is_none() && choices_of(schema).is_none() && schema.get("const").is_none()
            }
        };
        named
            || choices_of(schema).is_some_and(|choices| choices.iter().any(|choice| self.allows_null(choice)))
            || schema.get("$ref").is_some() && self.allows_null(self.resolve(schema))
    }

    /// Returns what a value of a resolved schema must be; `None` if anything is allowed.
    pub(super) fn expected(&self, schema: &Value) -> Option<Expected> {
        if let Some(words) = self.words(schema) {
            return Some(Expected::OneOf(words));
        }
        let kind = match schema.get("type")? {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null")?,
            kind => kind.as_str()?,
        };
        let format = schema.get("format").and_then(Value::as_str);
        Some(match (kind, format) {
            ("string", Some("uuid")) => Expected::Id,
            ("string", Some("date-time")) => Expected::Time,
            ("string", _) => Expected::Text,
            ("integer", _) => Expected::WholeNumber,
            ("number", _) => Expected::Number,
            ("boolean", _) => Expected::Boolean,
            ("array", _) => Expected::List,
            ("object", _) => Expected::Object,
            _ => return None,
        })
    }

    /// Returns the words of an enumeration.
    fn words(&self, schema: &Value) -> Option<Vec<String>> {
        let word = |value: &Value| value.as_str().map(str::to_owned);
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return words.iter().filter(|value| !value.is_null()).map(word).collect();
        }
        if let Some(only) = schema.get("const") {
            return word(only).map(|only| vec![only]);
        }
        let of = |choice: &&Value| self.words(choice).unwrap_or_default();
        let choices = self.choices(schema)?;
        let words: Vec<Vec<String>> = choices.iter().map(of).collect();
        words.iter().all(|words| !words.is_empty()).then(|| words.concat())
    }
}

fn choices_of(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()
}

fn only_choice(schema: &Value) -> Option<&Value> {
    if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        return Some(only);
    }
    let mut choices =
        choices_of(schema)?.iter().filter(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    choices.next().filter(|_| choices.next().is_none())
}
