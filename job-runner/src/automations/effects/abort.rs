//! Why an effect failed or its transaction was not committed, and whether it is tried again.

use std::time::Duration;

use automation::execution::{EffectCall, EffectError, Failure};
use domain::{FieldError, Transient as _};
use serde_json::{Value, json};

/// Maximum number of errors in the text of a failure; its output has all of them.
const SHOWN_MAX: usize = 5;

/// Why a transaction was not committed.
pub(super) enum Abort {
    /// The effect failed.
    Failed(Failure),
    /// The run is no longer this worker's, or the outcome of the commit is unknown.
    Lost,
    /// Another transaction holds what this one needs. The text says so, for the automation's owner.
    Busy(&'static str),
    /// Postgres is unavailable; nothing was committed.
    Unavailable,
    /// A statement failed.
    Store(store::Error),
}

impl From<Failure> for Abort {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<store::Error> for Abort {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl Abort {
    /// Returns why no further attempt is made, or `None` if one may succeed at once.
    pub(super) fn into_final(self, call: &EffectCall, is_late: bool) -> Option<EffectError> {
        match self {
            Self::Failed(failure) => Some(failure.into()),
            Self::Lost => Some(EffectError::Lost),
            Self::Busy(reason) => is_late.then(|| Failure::transient(reason).into()),
            Self::Store(error) if error.is_row_conflict() => is_late.then(|| {
                tracing::warn!(%error, step = %call.path, "a step met other transactions until its time limit");
                EffectError::Lost
            }),
            Self::Unavailable => is_late.then_some(EffectError::Lost),
            Self::Store(error) if error.is_statement_timeout() => is_late.then(|| {
                tracing::warn!(%error, step = %call.path, "a step took too long in Postgres until its time limit");
                Failure::transient("the step took too long in the database").into()
            }),
            Self::Store(error) if error.is_transient() => is_late.then(|| {
                tracing::warn!(%error, step = %call.path, "postgres is unavailable for a step; its run is claimed again later");
                EffectError::Lost
            }),
            Self::Store(error) => {
                tracing::error!(%error, step = %call.path, "postgres refused a step");
                Some(Failure::permanent("the step's data can't be stored; this is our fault").into())
            }
        }
    }
}

/// Waits before another attempt.
#[expect(clippy::disallowed_methods, reason = "the pause before another attempt")]
pub(super) async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Returns the failure of invalid values.
pub(super) fn invalid(errors: &[FieldError]) -> Failure {
    let shown: Vec<&str> = errors.iter().take(SHOWN_MAX).map(|error| error.message.as_str()).collect();
    let mut message = shown.join("; ");
    if errors.len() > SHOWN_MAX {
        message.push_str(&format!("; and {} more", errors.len() - SHOWN_MAX));
    }
    Failure { output: Some(json!({"fieldErrors": errors})), ..Failure::permanent(message) }
}

/// Returns whether a text in the value, or the name of a member, has a NUL character, which `jsonb` can't store.
pub(super) fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(members) => members.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
