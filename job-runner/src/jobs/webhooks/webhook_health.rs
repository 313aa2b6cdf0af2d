//! What an attempt shows is noted of its webhook, beside the delivery itself: each in a transaction of its own, as a
//! webhook is locked before its deliveries by everybody who locks both. A note that is lost by a kill is made by the
//! next attempt that shows the same.

use chrono::{DateTime, Utc};
use domain::webhooks::health::Diagnosis;
use service::metrics;
use store::deliveries::Attempt;
use store::webhooks;

use crate::Runner;

/// Notes what there is to note, once the attempt's end is written down: what waits is taken back from a webhook that
/// ends, and this delivery waits no more.
pub(crate) async fn note(
    runner: &Runner,
    attempt: &Attempt,
    diagnosis: Diagnosis,
    at: DateTime<Utc>,
) -> Result<(), store::Error> {
    let (account_id, webhook_id) = (attempt.account_id, attempt.webhook_id);
    if diagnosis == Diagnosis::Nothing {
        return Ok(());
    }
    let mut tx = store::begin(&runner.db).await?;
    match diagnosis {
        Diagnosis::Nothing => {}
        Diagnosis::Works => webhooks::end_failing(&mut tx, account_id, webhook_id).await?,
        Diagnosis::Fails => webhooks::begin_failing(&mut tx, account_id, webhook_id, at).await?,
        Diagnosis::Ends(reason) => {
            let reason = reason.word();
            let seen = (attempt.sealed_url.as_slice(), attempt.failing_since);
            if webhooks::deactivate(&mut tx, account_id, webhook_id, reason, at, seen).await? {
                metrics::counter("job_runner_webhook_deactivated_total").add(1, &[("reason", reason)]);
                tracing::info!(webhook.id = %webhook_id, reason, "switched off");
            }
        }
    }
    store::commit(tx).await
}

/// Notes where a Telegram group is from now on, before its delivery is due again.
pub(crate) async fn follow_chat(
    runner: &Runner,
    attempt: &Attempt,
    chat_id: &str,
) -> Result<(), store::Error> {
    let mut conn = store::acquire(&runner.db).await?;
    let from = attempt.telegram_chat_id.as_deref();
    webhooks::move_chat(&mut conn, attempt.account_id, attempt.webhook_id, from, chat_id).await
}
