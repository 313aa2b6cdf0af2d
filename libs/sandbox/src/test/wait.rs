//! Waiting in tests. The timeout is long enough for any busy machine, so that only a hang panics.

use std::panic::Location;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Returns the result of `work`. Panics after a minute.
#[track_caller]
pub fn with_timeout<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let result = tokio::time::timeout(TIMEOUT, work).await;
        #[expect(clippy::panic, reason = "for tests alone")]
        result.unwrap_or_else(|_| panic!("{caller}: timed out after a minute"))
    }
}

/// Polls until `poll` returns a value, and returns it.
#[track_caller]
pub fn eventually<T>(mut poll: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    with_timeout(async move {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            ticks.tick().await;
        }
    })
}

/// Polls until `holds` returns true.
#[track_caller]
pub fn until(mut holds: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    eventually(async move || holds().await.then_some(()))
}
