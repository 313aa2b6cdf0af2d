//! One example call of each operation. In the order of the list, they all succeed on a fresh account of the plan Pro.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::catalog::{Catalog, Operation};

const EXAMPLES: &str = include_str!("examples.json");

/// A placeholder that the reader fills in: any short text that makes a name unique.
const UNIQUE: &str = "$unique";

/// An example as the list has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    /// Method and path.
    endpoint: String,
    /// Arguments, with placeholders such as `$formId` for values of earlier answers.
    #[serde(default)]
    params: Map<String, Value>,
    /// Placeholders that the answer fills, as JSON pointers into it.
    #[serde(default)]
    keep: BTreeMap<String, String>,
    /// Operations with examples to play again before this one.
    #[serde(default)]
    first: Vec<String>,
    /// Bytes in base64 to send to the answer's `uploadUrl`.
    upload: Option<String>,
}

/// An example call of an operation.
#[derive(Debug)]
pub(super) struct Example {
    /// Its place in the order, from 1.
    pub(super) step: usize,
    pub(super) operation_id: String,
    pub(super) params: Map<String, Value>,
    pub(super) keep: BTreeMap<String, String>,
    pub(super) first: Vec<String>,
    pub(super) upload: Option<String>,
    /// The source of each placeholder in `params`.
    pub(super) placeholders: BTreeMap<String, String>,
}

/// Reads the list of examples.
pub(super) fn parse() -> anyhow::Result<Vec<Listed>> {
    serde_json::from_str(EXAMPLES).context("reading the examples of the API")
}

/// Returns the listed examples of the catalog's operations.
pub(super) fn read(listed: &[Listed], catalog: &Catalog) -> Vec<Example> {
    let mut sources =
        BTreeMap::from([(UNIQUE.to_owned(), "a short text that makes the name unique".to_owned())]);
    let mut examples = Vec::new();
    for one in listed {
        let is_same = |operation: &&Operation| one.endpoint == endpoint_of(operation);
        let Some(operation) = catalog.operations().iter().find(is_same) else { continue };
        let step = examples.len() + 1;
        let mut placeholders = BTreeMap::new();
        for name in placeholders_in(&Value::Object(one.params.clone()).to_string()) {
            if let Some(source) = sources.get(name) {
                placeholders.insert(name.to_owned(), source.clone());
            }
        }
        for (name, pointer) in &one.keep {
            let source = format!("`{pointer}` in the answer of {} (step {step})", operation.id);
            sources.insert(name.clone(), source);
        }
        examples.push(Example {
            step,
            operation_id: operation.id.clone(),
            params: one.params.clone(),
            keep: one.keep.clone(),
            first: one.first.clone(),
            upload: one.upload.clone(),
            placeholders,
        });
    }
    examples
}

/// Returns the operations of a category with their examples, in the order of these; extensions come last.
pub(super) fn operations_of<'a>(
    catalog: &'a Catalog,
    examples: &'a [Example],
    category: &'a str,
) -> Vec<(&'a Operation, Option<&'a Example>)> {
    let find = |id: &str| examples.iter().find(|example| example.operation_id == id);
    let operations = catalog.operations_of(category);
    let mut operations: Vec<_> = operations.map(|operation| (operation, find(&operation.id))).collect();
    operations.sort_by_key(|(operation, example)| {
        (operation.is_extension, example.map_or(usize::MAX, |example| example.step))
    });
    operations
}

fn endpoint_of(operation: &Operation) -> String {
    format!("{} {}", operation.method, operation.path)
}

/// Returns the placeholders in a text: `$` and a name.
fn placeholders_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('$').filter_map(move |(at, _)| {
        let rest = &text[at + 1..];
        let length = rest.find(|char: char| !char.is_ascii_alphanumeric()).unwrap_or(rest.len());
        (length > 0).then(|| &text[at..=at + length])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_one_example_with_known_arguments() {
        let catalog = Catalog::new(&crate::api::document());
        let listed = parse().unwrap();
        let examples = read(&listed, &catalog);
        assert_eq!(examples.len(), listed.len(), "an example belongs to no operation");
        let without: Vec<&str> = catalog
            .operations()
            .iter()
            .map(|operation| operation.id.as_str())
            .filter(|id| examples.iter().filter(|example| example.operation_id == *id).count() != 1)
            .collect();
        assert_eq!(without, Vec::<&str>::new());
        for example in examples {
            let operation = catalog.find(&example.operation_id).unwrap();
            operation
                .outline(&example.params)
                .unwrap_or_else(|errors| panic!("{}: {errors:?}", operation.id));
            let text = Value::Object(example.params.clone()).to_string();
            let unknown: Vec<&str> =
                placeholders_in(&text).filter(|name| !example.placeholders.contains_key(*name)).collect();
            assert_eq!(unknown, Vec::<&str>::new(), "{}: no earlier answer has these", operation.id);
        }
    }

    #[test]
    fn placeholders_are_found_inside_texts() {
        let found: Vec<&str> =
            placeholders_in(r#"{"a":"$pageId","b":"docs-$unique.example.com","c":"5 $"}"#).collect();
        assert_eq!(found, ["$pageId", "$unique"]);
    }
}
