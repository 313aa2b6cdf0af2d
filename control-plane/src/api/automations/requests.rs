//! Requests that create and update automations.
//!
//! `trigger`, `steps` and `concurrency` are read by [`AutomationDefinition::read`], whose errors have paths; serde would
//! name only the whole field.

use std::collections::BTreeMap;

use automation::definition::{AutomationDefinition, Concurrency, Step, Trigger};
use domain::automations::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, SLUG_BYTES_MAX, SLUG_PATTERN};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// Maximum size of the value of a variable.
pub(super) const ENV_VALUE_BYTES_MAX: usize = 4 << 10;
/// Maximum number of variables.
pub(super) const ENV_NAMES_MAX: usize = 200;

/// Creates an automation. `trigger`, `steps` and `concurrency` are those of `AutomationDefinition`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CreateAutomationRequest {
    /// Display name.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub(super) name: String,
    /// Last part of `triggerUrl`, unique in the account.
    #[schemars(length(min = 1, max = SLUG_BYTES_MAX), regex(pattern = SLUG_PATTERN))]
    pub(super) slug: String,
    /// Note for the owner.
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    pub(super) description: Option<String>,
    /// What starts a run.
    #[schemars(schema_with = "trigger")]
    pub(super) trigger: Value,
    /// Steps of the run, in order.
    #[schemars(with = "Vec<Step>", length(min = 1, max = 500))]
    pub(super) steps: Value,
    /// How many runs may be active at once; not limited if absent.
    #[schemars(with = "Option<Concurrency>")]
    pub(super) concurrency: Option<Value>,
    /// Variables, which expressions read as `env.NAME`: encrypted, and never returned.
    #[serde(default)]
    #[schemars(schema_with = "env")]
    pub(super) env: Option<BTreeMap<String, String>>,
    /// Whether it runs; default true.
    pub(super) enabled: Option<bool>,
    /// Folder to create the automation in; default: the key's folder.
    pub(super) folder_id: Option<Uuid>,
}

/// Updates an automation; fields that are left out stay. `trigger`, `steps` and `concurrency` are those of
/// `AutomationDefinition`. Runs that have begun keep the definition they began with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UpdateAutomationRequest {
    /// Display name.
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    pub(super) name: Option<String>,
    /// Last part of `triggerUrl`, unique in the account.
    #[schemars(length(min = 1, max = SLUG_BYTES_MAX), regex(pattern = SLUG_PATTERN))]
    pub(super) slug: Option<String>,
    /// Note for the owner; null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = DESCRIPTION_CHARS_MAX))]
    pub(super) description: Option<Option<String>>,
    /// What starts a run.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Trigger")]
    pub(super) trigger: Option<Value>,
    /// All steps of the run, in order.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Vec<Step>", length(min = 1, max = 500))]
    pub(super) steps: Option<Value>,
    /// How many runs may be active at once; null removes the limit.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<Concurrency>")]
    pub(super) concurrency: Option<Value>,
    /// All variables: those that are left out are removed, and null keeps the stored value.
    #[serde(default)]
    #[schemars(schema_with = "env_change")]
    pub(super) env: Option<BTreeMap<String, Option<String>>>,
    /// Whether it runs. Runs that have begun go on.
    pub(super) enabled: Option<bool>,
    /// Folder to move the automation to; null removes it from its folder.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Uuid>")]
    pub(super) folder_id: Option<Option<Uuid>>,
}

/// Keeps null apart from an absent member.
fn present<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(reader).map(Some)
}

/// The schema of a trigger. Adds the whole definition to the document as a component of its own.
fn trigger(generator: &mut SchemaGenerator) -> Schema {
    let _component = generator.subschema_for::<AutomationDefinition>();
    generator.subschema_for::<Trigger>()
}

fn env(_: &mut SchemaGenerator) -> Schema {
    variables("string")
}

fn env_change(_: &mut SchemaGenerator) -> Schema {
    variables(["string", "null"])
}

fn variables(kind: impl Into<Value>) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "maxProperties": ENV_NAMES_MAX,
        "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": 64},
        "additionalProperties": {"type": kind.into(), "maxLength": ENV_VALUE_BYTES_MAX},
    })
}
