//! Updates a webhook's health after an attempt, in a transaction of its own, because every transaction that locks both
//! locks a webhook before its deliveries. An update lost by a kill is made by the next attempt with the same diagnosis.

use chrono::{DateTime, Utc};
use domain::webhooks::health::Diagnosis;
use store::deliveries::Attempt;
use store::webhooks;

use crate::metrics;
use crate::state::JobState;

/// Stores the diagnosis. Called after the attempt's result was stored: deactivating a webhook cancels its pending
/// deliveries, and this delivery must not be one of them.
pub(crate) async fn update_health(
    state: &JobState,
    attempt: &Attempt,
    diagnosis: Diagnosis,
    at: DateTime<Utc>,
) -> Result<(), store::Error> {
    let (account_id, webhook_id) = (attempt.account_id, attempt.webhook_id);
    if diagnosis == Diagnosis::Nothing {
        return Ok(());
    }
    let mut tx = store::begin(&state.db).await?;
    match diagnosis {
        Diagnosis::Nothing => {}
        Diagnosis::Works => webhooks::clear_failing(&mut tx, account_id, webhook_id).await?,
        Diagnosis::Fails => webhooks::mark_failing(&mut tx, account_id, webhook_id, at).await?,
        Diagnosis::Ends(reason) => {
            let reason = reason.as_str();
            let seen = (attempt.sealed_url.as_slice(), attempt.failing_since);
            if webhooks::deactivate(&mut tx, account_id, webhook_id, reason, at, seen).await? {
                metrics::WEBHOOKS_DEACTIVATED.add(1, &[("reason", reason)]);
                tracing::info!(webhook.id = %webhook_id, reason, "deactivated a webhook");
            }
        }
    }
    store::commit(tx).await
}

/// Stores the new id of a Telegram group, before its delivery is due again.
pub(crate) async fn update_chat(
    state: &JobState,
    attempt: &Attempt,
    chat_id: &str,
) -> Result<(), store::Error> {
    let mut conn = store::acquire(&state.db).await?;
    let from = attempt.telegram_chat_id.as_deref();
    webhooks::update_chat_id(&mut conn, attempt.account_id, attempt.webhook_id, from, chat_id).await
}
