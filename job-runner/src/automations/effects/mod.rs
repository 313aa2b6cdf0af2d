//! The effects of steps: what a run does outside itself.
//!
//! An effect on Postgres is one transaction with the check that the run is still this worker's, the check of what the key
//! that saved the automation may do, and the record of the step. So after a kill the journal knows each effect that has
//! happened, and nothing happens twice. A request may be sent again; it carries the same `Idempotency-Key` each time.
//!
//! A conflict with another transaction, and an outage of Postgres, are tried again here until the step's time limit. If
//! Postgres is still unavailable then, the effect is [`EffectError::Lost`]: the walk ends, and the run is claimed again
//! when its lease has expired. So an outage delays a run and never fails it.

mod abort;
mod answers;
mod attempts;
mod authority;
mod entries;
mod entry_writer;
mod fetch;
mod fetch_client;
mod find;
mod pages;
mod respond;
mod submissions;
mod transaction;
mod webhooks;

use automation::execution::{Effect, EffectCall, EffectError};
use serde_json::Value;

pub(crate) use entry_writer::EntryWriter;
pub(crate) use fetch_client::FetchClient;

use super::RunContext;

/// Makes one attempt of an effect. Stores the record of a success if [`is_transactional`].
pub(crate) async fn perform(context: &RunContext, call: EffectCall) -> Result<Value, EffectError> {
    match &call.effect {
        Effect::Fetch { method, url, headers, body } => {
            let request = fetch::Fetch { method, url, headers, body: body.as_ref() };
            fetch::send(context, &call, request).await
        }
        Effect::CreateEntry { page_id, data } => entries::create(context, &call, *page_id, data).await,
        Effect::Respond { .. }
        | Effect::DeleteEntry { .. }
        | Effect::UpdatePage(_)
        | Effect::Find { .. }
        | Effect::CreateSubmission { .. }
        | Effect::SendWebhook { .. } => {
            attempts::perform(context, &call, is_transactional(&call.effect)).await
        }
    }
}

/// Returns whether [`perform`] stores the record of a success itself. The caller stores that of the others.
pub(crate) fn is_transactional(effect: &Effect) -> bool {
    !matches!(effect, Effect::Fetch { .. } | Effect::Find { .. })
}

#[cfg(test)]
mod tests;
