//! Steps that read submissions and entries, and the one that creates a submission.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Finds entries of a page or submissions of a form, newest first. Output: `{items, count, hasMore}`; an item of a page
/// is `{id, data, createdAt}`, one of a form `{id, payload, externalId, status, createdAt}`. `hasMore` says that more match
/// than the limit, or than fit into 1 MiB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FindStep {
    /// What to search.
    #[serde(rename = "in")]
    pub source: FindIn,
    /// With `entries`: the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_id: Option<Uuid>,
    /// With `submissions`: the form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form_id: Option<Uuid>,
    /// Only items whose fields have these values, all of them; templates by name of the field, at most 20. A field has a
    /// value if it equals it or is a list that contains it. Null is also the value of a missing field.
    #[serde(default, rename = "where", skip_serializing_if = "Map::is_empty")]
    #[schemars(extend("maxProperties" = 20))]
    pub filter: Map<String, Value>,
    /// Template of an RFC 3339 timestamp: only what was created from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub since: Option<String>,
    /// Maximum number of items.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
}

fn fifty() -> u32 {
    50
}

/// What a `find` step searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindIn {
    /// Entries of a page.
    Entries,
    /// Submissions of a form, without spam.
    Submissions,
}

/// Submits a form, under its own rules: an invalid answer fails the step. Output: `{submissionId, createdAt}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateSubmissionStep {
    /// The form.
    pub form_id: Uuid,
    /// Answers by name of the field; templates in its texts.
    pub payload: Map<String, Value>,
}
