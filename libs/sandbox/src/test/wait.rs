//! How tests wait: for a condition, however long a busy machine takes. Only a hang fails, by panic.

use std::panic::Location;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// Gives what `work` does; it may take as long as any machine should need.
#[track_caller]
pub fn with_timeout<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = Location::caller();
    async move {
        let done = tokio::time::timeout(PATIENCE, work).await;
        #[expect(clippy::panic, reason = "for tests alone")]
        done.unwrap_or_else(|_| panic!("{place}: waited a minute in vain"))
    }
}

/// Asks until there is an answer.
#[track_caller]
pub fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    with_timeout(async move {
        let mut turns = tokio::time::interval(PAUSE);
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            turns.tick().await;
        }
    })
}

/// Asks until it holds.
#[track_caller]
pub fn until(mut holds: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    eventually(async move || holds().await.then_some(()))
}
