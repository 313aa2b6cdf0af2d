//! The type of a value, as the API document describes it.

use serde_json::Value;

use super::field_path::Step;
use crate::api_client::operations::Operation;

/// A schema of the API document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema<'a> {
    document: &'a Value,
    node: &'a Value,
    pub(super) is_nullable: bool,
}

impl<'a> Schema<'a> {
    /// Returns the schema of an operation's JSON body.
    pub(super) fn of(document: &'a Value, operation: &Operation) -> Self {
        let method = operation.method.as_str().to_lowercase();
        let body = &document["paths"][operation.path][method]["requestBody"]["content"];
        Self { document, node: &body["application/json"]["schema"], is_nullable: false }.resolved()
    }

    /// Follows references, and takes the first of several types that is not null.
    fn resolved(mut self) -> Self {
        // A chain of references has an end in a valid document; the bound is for others.
        for _ in 0..16 {
            if let Some(target) = self.node["$ref"].as_str() {
                self.node = self.document.pointer(target.trim_start_matches('#')).unwrap_or(&Value::Null);
                continue;
            }
            let one_of = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| self.node[*name].as_array());
            let Some(variants) = one_of else { break };
            let is_null = |variant: &&Value| variant["type"] == "null";
            self.is_nullable |= variants.iter().any(|variant| is_null(&variant));
            self.node = variants.iter().find(|variant| !is_null(variant)).unwrap_or(&Value::Null);
        }
        self.is_nullable |= self.types().any(|name| name == "null");
        self
    }

    fn types(self) -> impl Iterator<Item = &'a str> {
        let types = &self.node["type"];
        types.as_str().into_iter().chain(types.as_array().into_iter().flatten().filter_map(Value::as_str))
    }

    pub(super) fn is(self, name: &str) -> bool {
        self.types().any(|found| found == name)
    }

    /// Returns the schema of a part.
    pub(super) fn part(self, step: &Step) -> Self {
        let node = match step {
            Step::Member(name) => &self.node["properties"][name],
            Step::Index(_) | Step::Append => &self.node["items"],
        };
        Self { node, is_nullable: false, ..self }.resolved()
    }

    /// Returns the value that a field's text stands for; `None` leaves the field out. Text that is no value of its type
    /// stays text, so that the API names the field.
    pub(super) fn value_of(self, text: &str) -> Option<Value> {
        if self.is("boolean") {
            return Some(Value::Bool(matches!(text, "on" | "true")));
        }
        if text.is_empty() {
            let is_text = self.is("string") && !self.is_nullable;
            return if self.is_nullable {
                Some(Value::Null)
            } else {
                is_text.then(|| Value::String(String::new()))
            };
        }
        let number = text.trim();
        let parsed = if self.is("integer") {
            number.parse::<i64>().ok().map(Value::from)
        } else if self.is("number") {
            number.parse::<f64>().ok().filter(|value| value.is_finite()).map(Value::from)
        } else {
            None
        };
        Some(parsed.unwrap_or_else(|| Value::String(text.to_owned())))
    }
}
