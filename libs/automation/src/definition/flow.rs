//! Steps that decide, compute, repeat, wait or end. They call nothing outside the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Computes values. Output: the values by name, read as `steps.<id>.<name>`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetStep {
    /// Templates by name. They can't read each other; use two steps for that.
    pub values: Map<String, Value>,
}

/// Filters, sorts and reshapes a list or an object. Output: the new list or object. The operations run in the order
/// `filter`, `sort`, `map`, `pick`: `sort` can read members that `map` drops, and `pick` selects members of the result
/// of `map`. Expressions and templates read each element as `item`, with its `index` (from 0) in a list, or its `key`
/// in an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformStep {
    /// The list or object, usually one template such as `{{ steps.find.items }}`; at most 10000 elements.
    pub input: Value,
    /// Expression without braces; elements for which it is false, null, 0 or empty are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub filter: Option<String>,
    /// Order of the elements; only of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<TransformSort>,
    /// Template of the new element, such as `{"email": "{{ lower(item.email) }}"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<Value>,
    /// Names of the members to keep: of each element of a list, or of the object itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub pick: Option<Vec<String>>,
}

/// Order of the elements of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformSort {
    /// Expression without braces that is compared, such as `item.createdAt`. Numbers come before texts.
    #[schemars(length(min = 1, max = 8192))]
    pub by: String,
    /// Direction.
    #[serde(default)]
    pub order: SortOrder,
}

/// Direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TransformSortOrder")]
pub enum SortOrder {
    /// Smallest first.
    #[default]
    Asc,
    /// Largest first.
    Desc,
}

/// Pauses the run: give exactly one of `for`, `until` and `resume: true`. Output: `{resumed, payload}`; `resumed` says
/// whether the link was used, `payload` is the JSON body it was called with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitStep {
    /// Duration, such as `15m`, `36h` or `1h30m` (units `s`, `m`, `h`, `d`), at most 30 days.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 2, max = 40),
        regex(pattern = "^([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?$")
    )]
    pub duration: Option<String>,
    /// Time to wait for: a template of an RFC 3339 timestamp, at most 30 days ahead; a past time does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub until: Option<String>,
    /// Waits until `{{ run.resumeUrl }}`, which earlier templates may send to a person, is confirmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
    /// With `resume`: the longest wait, such as `3d`; default and maximum 30 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 2, max = 40),
        regex(pattern = "^([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?$")
    )]
    pub timeout: Option<String>,
    /// With `resume`: what happens when the time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
}

/// What happens when the time of a resumable wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WaitOnTimeout")]
pub enum OnTimeout {
    /// The step fails; the default.
    #[default]
    Fail,
    /// The run goes on, with `resumed: false` in the output.
    Continue,
}

/// Ends the run at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopStep {
    /// Status of the run.
    pub status: StopStatus,
    /// Template of the reason, shown in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub message: Option<String>,
}

/// Status of a run that a `stop` step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopStatus {
    /// The run succeeded.
    Success,
    /// The run failed.
    Error,
}
