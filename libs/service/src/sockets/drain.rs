//! The stages of a shutdown, as clients see them: the service goes on accepting connections while balancers stop using it,
//! then closes its socket, and then its running requests have a limited time.

use std::time::Duration;

use tokio::time::Instant;

use crate::Shutdown;

/// Time that a new connection has for its first request once the socket is closed. Its client connected successfully, so
/// the request may be on its way.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// How a server ends its connections on shutdown.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How long connections are still accepted, so that balancers learn from `/readyz` to use another server. Each response
    /// asks its client to close the connection.
    pub period: Duration,
    /// How long running requests have afterwards. Then their connections are closed.
    pub timeout: Duration,
    /// Whether the next process accepts from the same socket. Then the connections in its queue are left to it.
    pub keeps_socket: bool,
}

impl Drain {
    /// Returns the longest time that a server takes to end.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.period + self.timeout
    }

    /// Waits until connections are no longer accepted.
    pub async fn over(&self, shutdown: &Shutdown) {
        shutdown.requested().await;
        if !self.period.is_zero() && !shutdown.skips_drain() {
            #[expect(clippy::disallowed_methods, reason = "balancers notice the shutdown in this time")]
            tokio::time::sleep(self.period).await;
        }
    }

    /// Returns when a connection without a request may be closed, which was accepted at `accepted`.
    #[must_use]
    pub fn first_request_deadline(accepted: Instant) -> Instant {
        accepted + FIRST_REQUEST_TIMEOUT
    }
}

impl Default for Drain {
    /// No drain period, and ten seconds for running requests.
    fn default() -> Self {
        Self { period: Duration::ZERO, timeout: Duration::from_secs(10), keeps_socket: false }
    }
}
