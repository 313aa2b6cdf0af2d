//! Fields that steps of every type have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Fields that steps of every type have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepOptions {
    /// Name by which later steps read the output: `steps.<id>`. Unique in the automation.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub id: String,
    /// Title for people; it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub name: Option<String>,
    /// Expression without braces, such as `trigger.payload.age >= 18 && steps.find.count == 0`. The step is skipped,
    /// and its output is null, if the value is false, null, 0, an empty text, list or object.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub condition: Option<String>,
    /// What a failure of this step does, after its retries.
    #[serde(default, skip_serializing_if = "OnError::is_default")]
    pub on_error: OnError,
    /// Time limit of one attempt, in milliseconds; default 15000. Only of steps that act outside the run: not of
    /// `condition`, `set`, `transform`, `for_each`, `wait` and `stop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 60_000))]
    pub timeout_ms: Option<u64>,
    /// Further attempts after a failure; none if absent. Only of steps that may have `timeoutMs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Output of the step in test runs, instead of its effect. Not a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_output: Option<Value>,
}

/// What a failed step does to its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "StepOnError")]
pub enum OnError {
    /// The run ends with status `error`.
    #[default]
    Fail,
    /// The run goes on; `steps.<id>.error` is the text of the failure.
    Continue,
}

impl OnError {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Further attempts of a step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StepRetry")]
pub struct Retry {
    /// Number of further attempts.
    #[schemars(range(min = 1, max = 5))]
    pub max: u32,
    /// Pause before each further attempt.
    #[serde(default)]
    pub backoff: Backoff,
}

/// Pause before each further attempt of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "StepBackoff")]
pub enum Backoff {
    /// 2 seconds each time.
    Fixed,
    /// 1, 2, 4, 8 and 16 seconds.
    #[default]
    Exponential,
}

impl Retry {
    /// Returns the pause in milliseconds after failed attempt `attempt` (1 is the first); `None` if that was the last.
    pub fn delay_ms(self, attempt: u32) -> Option<u64> {
        if attempt == 0 || attempt > self.max.min(5) {
            return None;
        }
        Some(match self.backoff {
            Backoff::Fixed => 2_000,
            Backoff::Exponential => 1_000 << (attempt - 1),
        })
    }
}
