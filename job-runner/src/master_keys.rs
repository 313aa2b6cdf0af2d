//! Reports stored secrets that no configured master key opens. The service works on without them: its other secrets, and
//! everything else, are not affected.

use std::time::Duration;

use service::{Check, Rounds, Shutdown};
use store::resealing;

use crate::state::JobState;

/// Interval of the checks.
pub(crate) const INTERVAL: Duration = Duration::from_mins(10);
/// Interval while Postgres does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Compares the keys that have sealed stored values with the configured ones, until `shutdown`.
pub(crate) async fn watch(
    state: JobState,
    check: Check,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut ticks = service::ticks(RETRY_INTERVAL);
    let mut reported = String::new();
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        let Some(found) = shutdown.unless_requested(rounds.watch(find_unreadable(&state))).await else {
            break;
        };
        match found {
            Ok(text) => {
                if text.is_empty() {
                    check.ok();
                } else {
                    check.failed(&text);
                }
                if text != reported && !text.is_empty() {
                    tracing::error!(
                        unreadable = text,
                        "stored secrets can't be read: secrets.master_key lacks a key, or has another one under its id"
                    );
                }
                reported = text;
                ticks.reset_after(INTERVAL);
            }
            Err(error) => {
                tracing::warn!(%error, "failed to check the master keys of stored secrets; retrying");
                check.failed(error.to_string());
            }
        }
    }
    Ok(())
}

/// Returns what the keys don't open, as a text that names ids and columns.
async fn find_unreadable(state: &JobState) -> Result<String, store::Error> {
    let mut conn = store::acquire_detached(&state.db, STATEMENT_TIMEOUT).await?;
    let unreadable = resealing::find_unreadable(&mut conn, &state.master_key).await?;
    Ok(unreadable.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}
