//! JSON Schema of the tagged enums: one component per type, with the shared fields in it and no others allowed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::automation::Concurrency;
use super::kinds::Kind;
use super::options::StepOptions;
use super::step::{Action, Branch, Step};
use super::trigger::Trigger;

fn one_of<T>(generator: &mut SchemaGenerator, kinds: &[Kind<T>], description: &str) -> Schema {
    let choices: Vec<Schema> = kinds.iter().map(|kind| (kind.reference)(generator)).collect();
    let reference = |(kind, choice): (&Kind<T>, &Schema)| {
        (kind.word.to_owned(), choice.get("$ref").cloned().unwrap_or_default())
    };
    let mapping: Map<String, Value> = kinds.iter().zip(&choices).map(reference).collect();
    json_schema!({
        "description": description,
        "oneOf": choices,
        "discriminator": {"propertyName": "type", "mapping": mapping},
    })
}

impl JsonSchema for Trigger {
    fn schema_name() -> Cow<'static, str> {
        "AutomationTrigger".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        one_of(generator, Self::KINDS, "What starts a run.")
    }
}

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        "AutomationStep".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let description = "One step. Its output is `steps.<id>` for the steps after it; of a step that was skipped \
                           it is null.";
        one_of(generator, Action::KINDS, description)
    }
}

/// Names of the members that an object may have, and of those that it must have.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) members: Vec<String>,
    pub(super) required: Vec<String>,
}

impl Shape {
    fn of(schema: &Schema) -> Self {
        let members = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        Self {
            members: members.into_iter().flatten().map(|(name, _)| name.clone()).collect(),
            required: required.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }
}

/// Shapes of all objects, from their schemas, so that errors and documentation can't differ.
pub(super) struct Shapes {
    pub(super) triggers: BTreeMap<&'static str, Shape>,
    pub(super) steps: BTreeMap<&'static str, Shape>,
    pub(super) options: Shape,
    pub(super) branch: Shape,
    pub(super) concurrency: Shape,
}

pub(super) static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let mut generator = SchemaGenerator::default();
    let triggers = Trigger::KINDS.iter();
    let triggers = triggers.map(|kind| (kind.word, Shape::of(&(kind.schema)(&mut generator)))).collect();
    let steps = Action::KINDS.iter();
    let steps = steps.map(|kind| (kind.word, Shape::of(&(kind.schema)(&mut generator)))).collect();
    Shapes {
        triggers,
        steps,
        options: Shape::of(&StepOptions::json_schema(&mut generator)),
        branch: Shape::of(&Branch::json_schema(&mut generator)),
        concurrency: Shape::of(&Concurrency::json_schema(&mut generator)),
    }
});
