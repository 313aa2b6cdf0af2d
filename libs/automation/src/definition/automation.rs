//! A whole automation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::example::example;
use super::step::{self, Step};
use super::trigger::Trigger;

/// Maximum size of a definition, as JSON.
pub const DEFINITION_BYTES_MAX: usize = 1 << 20;
/// Maximum size of a template in a field that holds one short text, such as a URL, a title or a time.
pub const TEMPLATE_BYTES_MAX: usize = 8_192;

/// An automation: what starts it, and the steps that then run in order. Every string of a step may hold templates,
/// `{{ expression }}`; a string that is exactly one template keeps the type of its value (number, list, object).
/// Expressions read `trigger` (`trigger.payload.email`), the output of earlier steps (`steps.lookup.body.id`),
/// variables (`env.TOKEN`), `run` (`run.id`, `run.startedAt`, `run.resumeUrl`, `run.isTest`) and inside a loop its
/// item. A missing member is null, never an error. Names of members are not templates. The templates of one step may write
/// 256 KB together, and 64 KB into a text that holds more than one template.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, example = example())]
pub struct AutomationDefinition {
    /// What starts a run.
    pub trigger: Trigger,
    /// Steps of the run, in order: at most 500, including those inside branches and loops; fewer by plan.
    #[schemars(length(min = 1, max = 500))]
    pub steps: Vec<Step>,
    /// How many runs of this automation may be active at once; not limited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
}

/// Limit of runs that are active at the same time; further runs wait in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AutomationConcurrency")]
pub struct Concurrency {
    /// Number of runs at the same time.
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
    /// Template that reads only `trigger`, such as `{{ trigger.payload.email }}`: the limit then counts for each
    /// value apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub key: Option<String>,
}

impl AutomationDefinition {
    /// Returns the definition as compact JSON that [`Self::read`] reads back: our fields in a fixed order, defaults
    /// left out, users' objects as they were. Store it as text: `jsonb` would change the order, and so the hash.
    pub fn canonical_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the SHA-256 of [`Self::canonical_json`], by which a version is stored once.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.canonical_json().as_bytes()).into()
    }

    /// Returns every step with its path, in the order of the text, including those inside branches and loops.
    pub fn all_steps(&self) -> Vec<(String, &Step)> {
        let mut found = Vec::new();
        step::collect(&self.steps, "steps", &mut found);
        found
    }

    /// Finds a step by its id, at any depth.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.all_steps().into_iter().map(|(_, step)| step).find(|step| step.options.id == id)
    }
}
