//! One attempt to tell a webhook.
//!
//! The attempt is leased in Postgres, so that two workers never send the same delivery at once; its end, and
//! when to try again, are written there too ([`crate::deliveries`]). Killed in between, the lease runs out and the
//! next attempt carries the same `webhook-id`: the receiver can tell.

pub(crate) mod mails;
mod notes;
mod outcome;
mod request;

use std::time::Instant;

use service::metrics;
use store::deliveries::Attempt;

use crate::Runner;
pub(crate) use notes::note;
pub(crate) use outcome::Ended;
use outcome::{INTERRUPTED, UNWRITABLE};

/// Makes an attempt that has been begun; gives how it ended, which is still to be written down.
pub(crate) async fn deliver(runner: &Runner, attempt: &Attempt) -> Ended {
    let ended = send(runner, attempt).await;
    let outcome = &ended.outcome;
    let result = outcome.error_class.unwrap_or("delivered");
    metrics::counter("job_runner_delivery_attempted_total").add(1, &[("result", result)]);
    tracing::info!(delivery.id = %attempt.delivery_id, attempt = attempt.attempt, result, status = outcome.status_code, "attempted");
    if let Some(chat_id) = &ended.moved_to
        && let Err(error) = notes::follow_chat(runner, attempt, chat_id).await
    {
        tracing::warn!(%error, "where a chat has gone is asked again with the next attempt");
    }
    ended
}

/// One attempt, which always ends in an outcome: one that didn't would be begun again after every lease,
/// counted and never written down.
#[tracing::instrument(name = "webhook attempt", skip_all, fields(delivery.id = %attempt.delivery_id, attempt = attempt.attempt))]
async fn send(runner: &Runner, attempt: &Attempt) -> Ended {
    let started = Instant::now();
    let answer = if outcome::is_used_up(runner, attempt) {
        // Every attempt was begun, and whoever made the last did not live to say how it ended.
        Err(INTERRUPTED)
    } else {
        match request::write(runner, attempt) {
            Ok(request) => runner.outbound.send(request).await.map_err(|error| error.class()),
            Err(error) => {
                tracing::error!(
                    error = format!("{error:#}"),
                    "a delivery can't be written; wrong master key?"
                );
                Err(UNWRITABLE)
            }
        }
    };
    outcome::of(runner, attempt, answer, started.elapsed())
}
