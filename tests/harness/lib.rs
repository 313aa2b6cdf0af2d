//! What stories need: a whole system of their own, a client, a webhook receiver, and a sink for traces.
//!
//! Everything goes through real processes and HTTP; nothing looks inside a service. Waiting is always for a
//! condition, and bounded.

mod client;
mod receiver;
mod sink;
mod system;

use std::time::{Duration, Instant};

pub use client::{Answer, Client};
pub use receiver::{Delivery, Receiver};
pub use sink::{Span, TraceSink};
pub use system::System;

/// How long a story waits for anything before it has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again until there is an answer.
///
/// # Errors
/// There is none after [`PATIENCE`]; `what` says what was waited for.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> anyhow::Result<T> {
    let began = Instant::now();
    let mut turns = tokio::time::interval(Duration::from_millis(10));
    loop {
        if let Some(answer) = ask().await {
            return Ok(answer);
        }
        anyhow::ensure!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        turns.tick().await;
    }
}
