//! Reports stored secrets that no configured master key opens. The service works on without them: its other secrets, and
//! everything else, are not affected.

use std::fmt::Display;
use std::time::Duration;

use super::ticks;
use crate::{Check, Rounds, Shutdown};

/// Interval of the checks.
pub const INTERVAL: Duration = Duration::from_mins(10);
/// Interval while the store does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);

/// Sets `check` and logs what the keys don't open, until `shutdown`. `find_unreadable` returns it as a text, which is
/// empty if they open everything.
pub async fn watch<E: Display>(
    check: Check,
    rounds: Rounds,
    shutdown: Shutdown,
    find_unreadable: impl AsyncFn() -> Result<String, E>,
) -> anyhow::Result<()> {
    let mut ticks = ticks(RETRY_INTERVAL);
    let mut reported = String::new();
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        let Some(found) = shutdown.unless_requested(rounds.watch(find_unreadable())).await else { break };
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
