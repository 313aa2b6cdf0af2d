//! Test fixtures for end-to-end stories: a private system or single services of it, a balancer, an HTTP client, a load, a
//! webhook receiver, a peer server, a sink of traces and logs, and third-party programs.
//!
//! Everything goes through real processes and HTTP. Tests wait for conditions, for at most [`TIMEOUT`].

mod balancer;
mod client;
mod load;
mod otlp_receiver;
mod packages;
mod peer;
mod receiver;
mod replica;
mod system;
mod trace_sink;

use std::time::{Duration, Instant};

pub use balancer::Balancer;
pub use client::{Client, Response};
pub use load::{Failure, Load, Outcome, Rate};
pub use otlp_receiver::OtlpReceiver;
pub use packages::{Packages, run_over};
pub use peer::{Answer, Peer, PeerRequest};
pub use receiver::{Delivery, Receiver};
pub use replica::Replica;
pub use system::System;
pub use trace_sink::{LogLine, Span, TraceSink};

/// The longest that a test waits for a condition before it fails.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Polls until `poll` returns a value. After [`TIMEOUT`] the error names `condition`.
pub async fn until<T>(condition: &str, poll: impl AsyncFnMut() -> Option<T>) -> anyhow::Result<T> {
    until_within(TIMEOUT, condition, poll).await
}

/// Polls until `poll` returns a value. After `timeout` the error names `condition`.
pub async fn until_within<T>(
    timeout: Duration,
    condition: &str,
    mut poll: impl AsyncFnMut() -> Option<T>,
) -> anyhow::Result<T> {
    let began = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    loop {
        if let Some(value) = poll().await {
            return Ok(value);
        }
        anyhow::ensure!(began.elapsed() < timeout, "waited {timeout:?} for {condition}");
        ticks.tick().await;
    }
}
