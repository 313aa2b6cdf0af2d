//! Checks at the start that a store's schema fits this program. Services never migrate: a schema that is too old or too new ends
//! the process, and so does a store that answers without telling its schema. Decision: `libs/store/docs/0007-releases-of-the-schema.md`.

use std::fmt::Display;
use std::time::Duration;

use super::ticks;
use crate::{Check, Shutdown};

/// How long the start waits for the store. A service starts without its stores, and then checks when they first answer.
const START_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval while the store does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Checks the schema, and returns the component that repeats the check until the store has answered once. `find_mismatch`
/// returns the sentence that tells the operator what is wrong, or `None` if the schema fits; an error means that the store does
/// not answer, or not now. A check that counts for readiness keeps requests away from a process that is not checked yet.
///
/// # Errors
/// The schema does not fit. The component fails with the same error if that is found later.
pub async fn check_at_start<M: Display, E: Display>(
    check: Check,
    shutdown: Shutdown,
    find_mismatch: impl AsyncFn() -> Result<Option<M>, E>,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>>> {
    let first = tokio::time::timeout(START_TIMEOUT, find_mismatch()).await;
    let mut has_answered = match first {
        Ok(found) => conclude(&check, found)?,
        Err(_elapsed) => {
            check.failed("not checked yet: the store did not answer");
            false
        }
    };
    if !has_answered {
        tracing::warn!("the schema of a store is not checked yet; /readyz says why");
    }
    Ok(async move {
        let mut ticks = ticks(RETRY_INTERVAL);
        while !has_answered && shutdown.unless_requested(ticks.tick()).await.is_some() {
            let Some(found) = shutdown.unless_requested(find_mismatch()).await else { break };
            has_answered = conclude(&check, found)?;
        }
        shutdown.requested().await;
        Ok(())
    })
}

/// Returns whether the store has answered.
fn conclude<M: Display, E: Display>(check: &Check, found: Result<Option<M>, E>) -> anyhow::Result<bool> {
    match found {
        Ok(None) => {
            check.ok();
            Ok(true)
        }
        Ok(Some(mismatch)) => {
            check.failed(mismatch.to_string());
            anyhow::bail!("{mismatch}")
        }
        Err(error) => {
            check.failed(format!("not checked yet: {error}"));
            Ok(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Readiness;

    const MISMATCH: &str = "the database has schema 1, this program needs 2";

    fn report(readiness: &Readiness) -> serde_json::Value {
        serde_json::to_value(readiness.report()).unwrap()
    }

    #[tokio::test]
    async fn a_schema_that_does_not_fit_ends_the_start() {
        let shutdown = Shutdown::new();
        let readiness = Readiness::new(&shutdown);
        let find = async || Ok::<_, String>(Some(MISMATCH));
        let started = check_at_start(readiness.register("schema"), shutdown, find).await;
        assert_eq!(started.err().map(|error| error.to_string()).as_deref(), Some(MISMATCH));
        assert_eq!(report(&readiness)["checks"]["schema"]["reason"], MISMATCH);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_answers_later_is_checked_then() {
        let shutdown = Shutdown::new();
        let readiness = Readiness::new(&shutdown);
        let calls = AtomicUsize::new(0);
        let find = async || match calls.fetch_add(1, Ordering::Relaxed) {
            0 => std::future::pending().await,
            1 => Err("connection refused"),
            _ => Ok(Some(MISMATCH)),
        };
        let check = readiness.register("schema");
        let component = check_at_start(check, shutdown.clone(), find).await.unwrap();
        let waiting = report(&readiness);
        assert_eq!(waiting["checks"]["schema"]["ok"], false);
        assert_eq!(waiting["ready"], false, "it may be the wrong program for the store");
        assert_eq!(component.await.unwrap_err().to_string(), MISMATCH);
        assert_eq!(calls.into_inner(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_schema_that_fits_is_not_checked_again() {
        let shutdown = Shutdown::new();
        let readiness = Readiness::new(&shutdown);
        let calls = AtomicUsize::new(0);
        let find = async || {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok::<Option<String>, String>(None)
        };
        let check = readiness.register("schema");
        let component = check_at_start(check, shutdown.clone(), find).await.unwrap();
        assert_eq!(report(&readiness)["checks"]["schema"]["ok"], true);
        assert_eq!(report(&readiness)["ready"], true);
        let stop = async {
            tokio::time::advance(Duration::from_secs(60)).await;
            shutdown.request();
        };
        let (ended, ()) = tokio::join!(component, stop);
        ended.unwrap();
        assert_eq!(calls.into_inner(), 1);
    }
}
