//! The walk of a run: it replays the definition over a journal, and performs what the journal does not hold yet.
//!
//! Every step with an effect outside the run has a record, stored with the effect. After a kill, a wait or a retry,
//! the walk starts at the first step again: a recorded step returns its recorded output at once, and steps that only
//! compute are computed again, so the walk reaches the same place with the same values. It does no I/O itself; stores,
//! requests and the clock are behind [`Effects`], expressions behind [`Language`].

mod attempts;
mod effect;
mod flow;
mod journal;
mod language;
mod loops;
mod page_edit;
mod render;
mod scope;
mod transform;
mod waits;
mod walk;
mod work_limit;

pub use crate::templates::{Escape, OutputBudget};
pub use effect::{Effect, EffectCall, EffectError, Effects, Failure, FindSource, PageEdit};
pub use journal::{Journal, Recorded, StepRecord, StepStatus};
pub use language::Compiled;
pub use scope::{Language, RunFacts, Scope};
pub use walk::run;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::expressions::values::is_deeper;

/// Maximum number of elements of a `for_each` step.
pub const LOOP_ITEMS_MAX: usize = 500;
/// Maximum number of elements that a `transform` step reads.
pub const TRANSFORM_ITEMS_MAX: usize = 10_000;
/// Maximum number of requests that one run sends, retries included.
pub const RUN_FETCHES_MAX: u32 = 100;
/// Maximum size of all outputs that one run holds, as JSON.
pub const RUN_BYTES_MAX: usize = 8 << 20;
/// Maximum number of steps that one run executes, each pass of a loop counted.
pub const RUN_STEPS_MAX: u32 = 10_000;
/// Maximum number of operations of all expressions of one walk; 64 bytes that they copy count as one.
pub const RUN_OPERATIONS_MAX: u64 = 20_000_000;

/// Maximum nesting of an effect and of a fetched body. The log and the output wrap them in further levels.
pub const EFFECT_DEPTH_MAX: usize = 90;

/// Returns whether a value is nested deeper than [`EFFECT_DEPTH_MAX`] levels.
pub fn is_too_deep(value: &Value) -> bool {
    is_deeper(value, EFFECT_DEPTH_MAX)
}

/// How a walk ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The run succeeded; `message` is that of a `stop` step.
    Success {
        /// The reason that a `stop` step gave.
        message: Option<String>,
    },
    /// The run failed.
    Error {
        /// Path of the step that failed, or of the `stop` step.
        path: String,
        /// The reason, for the automation's owner.
        message: String,
    },
    /// The run is due again at `until`, or earlier if its link is used.
    Waiting {
        /// When the run is due again.
        until: DateTime<Utc>,
        /// Number of the resumable wait, if it waits for its link.
        resume: Option<u32>,
    },
    /// The run was cancelled, deleted or taken over by another worker: nothing more may be written.
    Lost,
}

#[cfg(test)]
mod tests;
