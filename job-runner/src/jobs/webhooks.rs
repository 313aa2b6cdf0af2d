//! One attempt to deliver an event to a webhook.
//!
//! The attempt is leased in Postgres, so two workers never send the same delivery at once. Its result and the next attempt's
//! time are stored there too ([`crate::deliveries`]). After a kill in between, the lease expires and the next attempt
//! carries the same `webhook-id`, by which the receiver recognizes a duplicate.

pub(crate) mod mails;
mod outcome;
mod request;
mod webhook_health;

use std::time::{Duration, Instant};

use store::deliveries::Attempt;
use tokio::time::timeout;

use crate::metrics::{self, DeliveryInProgress};
use crate::state::JobState;
pub(crate) use outcome::AttemptResult;
use outcome::{INTERRUPTED, OWN_ADDRESS, UNWRITABLE};
pub(crate) use webhook_health::update_health;

/// Makes a claimed attempt. Returns its result, which the caller stores.
pub(crate) async fn deliver(state: &JobState, attempt: &Attempt) -> AttemptResult {
    let (_in_progress, began) = (DeliveryInProgress::new(), Instant::now());
    let attempted = send(state, attempt).await;
    let outcome = &attempted.outcome;
    let result = outcome.error_class.unwrap_or("delivered");
    metrics::DELIVERIES_ATTEMPTED.add(1, &[("result", result)]);
    let outcome_label = if outcome.error_class.is_none() { "delivered" } else { "failed" };
    metrics::DELIVERY_SECONDS.record(began.elapsed(), &[("result", outcome_label)]);
    tracing::debug!(delivery.id = %attempt.delivery_id, attempt = attempt.attempt, result, status = outcome.status_code, "attempted");
    if let Some(chat_id) = &attempted.moved_to
        && let Err(error) = webhook_health::update_chat(state, attempt, chat_id).await
    {
        tracing::warn!(%error, "storing a chat's new id failed; the next attempt receives it again");
    }
    attempted
}

/// Time for the lookup of a target's domain: the rest of the lease belongs to the receiver.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// Makes one attempt, which always has a result. Without one, the delivery would be claimed again after every lease,
/// counted, and never completed.
#[tracing::instrument(name = "webhook attempt", skip_all, fields(delivery.id = %attempt.delivery_id, attempt = attempt.attempt))]
async fn send(state: &JobState, attempt: &Attempt) -> AttemptResult {
    let mut started = Instant::now();
    let mut sent = None;
    let response = if outcome::is_exhausted(state, attempt) {
        // All attempts were started before, and the worker of the last one died without storing a result.
        Err(INTERRUPTED)
    } else {
        match request::build(state, attempt) {
            Ok((request, signed)) => {
                let is_own = state.own_addresses.serve(&request.url, state.clock.now());
                match timeout(LOOKUP_TIMEOUT, is_own).await {
                    Ok(Ok(true)) => Err(OWN_ADDRESS),
                    // The header limits a loop even if a domain can't be looked up.
                    Ok(Ok(false) | Err(_)) | Err(_) => {
                        (started, sent) = (Instant::now(), Some(signed));
                        state.outbound.send(request).await.map_err(|error| error.class())
                    }
                }
            }
            Err(error) => {
                tracing::error!(
                    error = format!("{error:#}"),
                    "building a delivery's request failed; is the master key wrong?"
                );
                Err(UNWRITABLE)
            }
        }
    };
    outcome::of(state, attempt, sent, response, started.elapsed())
}
