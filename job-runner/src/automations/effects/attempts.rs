//! Attempts of the effects that have a transaction of their own.

use std::time::Duration;

use automation::execution::{Effect, EffectCall, EffectError, Failure};
use serde_json::Value;
use tokio::time::Instant;

use super::abort::{Abort, sleep};
use super::transaction::{Transaction, find_authority, finish};
use super::{entries, find, pages, respond, submissions, webhooks};
use crate::automations::RunContext;

/// Pauses between attempts that met another transaction: doubled from the first to the last.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Performs an effect in a transaction of its own. Until the step's time limit, it is tried again if it meets another
/// transaction. Its record is stored with it if `is_recorded`.
pub(super) async fn perform(
    context: &RunContext,
    call: &EffectCall,
    is_recorded: bool,
) -> Result<Value, EffectError> {
    let deadline = Instant::now() + call.timeout;
    let mut pause = PAUSE_MIN;
    loop {
        let abort = match attempt(context, call, is_recorded).await {
            Ok(output) => return Ok(output),
            Err(abort) => abort,
        };
        if let Some(error) = abort.into_final(call, Instant::now() + pause >= deadline) {
            return Err(error);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn attempt(context: &RunContext, call: &EffectCall, is_recorded: bool) -> Result<Value, Abort> {
    let authority = find_authority(context).await?;
    let mut tx = store::begin(&context.state.db).await?;
    if matches!(call.effect, Effect::UpdatePage(_)) {
        // Every transaction that writes pages locks the counters first.
        store::usage::lock(&mut tx, context.account_id).await?;
    }
    let now = context.state.clock.now();
    let mut transaction = Transaction { context, tx, authority, now, signals: Vec::new() };
    match apply(&mut transaction, &call.effect).await {
        Ok(output) => finish(transaction, call, output, is_recorded).await,
        Err(abort) => {
            // Ends the locks before the failure is recorded. A rollback that fails closes the connection.
            let _closed = store::rollback(transaction.tx).await;
            Err(abort)
        }
    }
}

async fn apply(transaction: &mut Transaction<'_>, effect: &Effect) -> Result<Value, Abort> {
    match effect {
        Effect::Respond { status, headers, body } => {
            respond::store(transaction, *status, headers, body.as_ref()).await
        }
        Effect::DeleteEntry { page_id, entry_id } => entries::delete(transaction, *page_id, *entry_id).await,
        Effect::UpdatePage(edit) => pages::edit(transaction, edit).await,
        Effect::Find { source, filter, since, limit } => {
            find::find(transaction, *source, filter, *since, *limit).await
        }
        Effect::CreateSubmission { form_id, payload } => {
            submissions::create(transaction, *form_id, payload).await
        }
        Effect::SendWebhook { webhook_id, payload } => {
            webhooks::send(transaction, *webhook_id, payload).await
        }
        Effect::Fetch { .. } | Effect::CreateEntry { .. } => {
            Err(Failure::permanent("this step has a transaction of its own kind").into())
        }
    }
}
