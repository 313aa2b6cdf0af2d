//! The stages of a shutdown, as clients see them: the service goes on accepting connections while balancers stop using it, and
//! until the requests that began meanwhile are answered. Then it closes its socket, and the last requests have a limited time.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::Shutdown;

/// How long a connection is idle before it may be closed if its client was not told that it ends. The edge keeps unused
/// connections to the inner services for a shorter time, so none of its requests meets the end of one.
const QUIET_TIME: Duration = Duration::from_secs(5);
/// The time of requests that arrived while older ones were waited for, at most half of the timeout.
const LAST_REQUESTS_TIME: Duration = Duration::from_secs(5);
/// Time for running requests when the service ends because a part of it has died.
const TIMEOUT_AFTER_FAILURE: Duration = Duration::from_secs(10);

/// How a server ends its connections on shutdown.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How long connections are accepted in any case, so that balancers learn from `/readyz` to use another server. Each
    /// response asks its client to close the connection. Zero for servers with clients that keep no connections: idle ones are
    /// closed at once.
    pub period: Duration,
    /// How long running requests have afterwards. Then their connections are closed.
    pub timeout: Duration,
}

impl Drain {
    /// Time that a new connection has for its first request once the others are closed. Its client connected successfully,
    /// so the request may be on its way.
    pub const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

    /// Returns the longest time that a server takes to end after `shutdown` was requested in its way.
    pub(crate) fn longest_after(&self, shutdown: &Shutdown) -> Duration {
        let timeout =
            if shutdown.follows_failure() { self.timeout.min(TIMEOUT_AFTER_FAILURE) } else { self.timeout };
        if shutdown.skips_drain() { timeout } else { self.period + timeout }
    }

    /// Waits for the end of the drain period.
    pub async fn over(&self, shutdown: &Shutdown) {
        shutdown.requested().await;
        if !self.period.is_zero() && !shutdown.skips_drain() {
            #[expect(clippy::disallowed_methods, reason = "balancers notice the shutdown in this time")]
            tokio::time::sleep(self.period).await;
        }
    }
}

impl Default for Drain {
    /// No drain period, and ten seconds for running requests.
    fn default() -> Self {
        Self { period: Duration::ZERO, timeout: Duration::from_secs(10) }
    }
}

/// A request that began before the end of the drain period. It ends when this is dropped.
#[derive(Debug)]
pub struct EarlyRequest {
    _token: TaskTrackerToken,
}

/// The drain of one server, shared by its sockets, connections and requests.
#[derive(Clone, Debug)]
pub struct Draining {
    drain: Drain,
    shutdown: Shutdown,
    period_over: Shutdown,
    deadline: Arc<OnceLock<Instant>>,
    /// The requests that began before the end of the drain period.
    early: TaskTracker,
    /// The connections with clients that don't know that they end.
    unaware: TaskTracker,
}

impl Draining {
    /// The drain that follows `shutdown`.
    #[must_use]
    pub fn new(drain: Drain, shutdown: &Shutdown) -> Self {
        Self {
            drain,
            shutdown: shutdown.clone(),
            period_over: Shutdown::new(),
            deadline: Arc::default(),
            early: TaskTracker::new(),
            unaware: TaskTracker::new(),
        }
    }

    /// Returns whether shutdown was requested, so that each response is to be the last of its connection.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.shutdown.is_requested()
    }

    /// Waits until shutdown is requested.
    pub async fn requested(&self) {
        self.shutdown.requested().await;
    }

    /// Counts a request until the result is dropped. `None` if it began after the drain period: new ones arrive all the time,
    /// so connections are not accepted because of them.
    #[must_use]
    pub fn begin_request(&self) -> Option<EarlyRequest> {
        (!self.early.is_closed()).then(|| EarlyRequest { _token: self.early.token() })
    }

    /// Counts a connection with a client that was not told that it ends, until the token is dropped.
    pub(crate) fn begin_connection(&self) -> TaskTrackerToken {
        self.unaware.token()
    }

    /// Waits for the end of the drain period.
    pub(crate) async fn period_over(&self) {
        self.period_over.requested().await;
    }

    /// Waits until connections are no longer accepted: the drain period is over, and the requests that began in it are
    /// answered. Until then the next process of a service that is alone on its port can't start.
    pub async fn over(&self) {
        self.drain.over(&self.shutdown).await;
        let deadline = self.deadline();
        self.early.close();
        self.unaware.close();
        self.period_over.request();
        if self.shutdown.skips_drain() {
            return;
        }
        let reserve = LAST_REQUESTS_TIME.min(self.drain.timeout / 2);
        let answered = async {
            self.early.wait().await;
            if !self.quiet_time().is_zero() {
                // A client may have made a connection for a later request.
                let _elapsed = timeout(QUIET_TIME, self.unaware.wait()).await;
            }
        };
        let _elapsed = timeout_at(deadline - reserve, answered).await;
    }

    /// Returns when the last connections are closed. The time begins with the first call.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        *self.deadline.get_or_init(|| {
            let no_period = Drain { period: Duration::ZERO, ..self.drain };
            Instant::now() + no_period.longest_after(&self.shutdown)
        })
    }

    /// Returns how long a connection must be idle before it is closed after the drain period.
    pub(crate) fn quiet_time(&self) -> Duration {
        let waits = !self.drain.period.is_zero() && !self.shutdown.skips_drain();
        if waits { QUIET_TIME } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const DRAIN: Drain = Drain { period: MINUTE, timeout: MINUTE };

    #[tokio::test(start_paused = true)]
    async fn connections_are_accepted_until_the_requests_of_the_period_are_answered() {
        let shutdown = Shutdown::new();
        let (draining, began) = (Draining::new(DRAIN, &shutdown), Instant::now());
        let early = draining.begin_request().unwrap();
        shutdown.request();
        let answered = async {
            draining.period_over().await;
            assert_eq!(began.elapsed(), MINUTE);
            assert!(draining.begin_request().is_none(), "later requests are not waited for");
            tokio::time::advance(MINUTE / 2).await;
            drop(early);
        };
        tokio::join!(draining.over(), answered);
        assert_eq!(began.elapsed(), MINUTE + MINUTE / 2);
        assert_eq!(draining.deadline() - began, 2 * MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_requests_have_some_time_of_their_own() {
        let shutdown = Shutdown::new();
        let (draining, began) = (Draining::new(DRAIN, &shutdown), Instant::now());
        let _endless = draining.begin_request();
        shutdown.request();
        draining.over().await;
        assert_eq!(draining.deadline() - Instant::now(), LAST_REQUESTS_TIME);
        assert_eq!(began.elapsed(), 2 * MINUTE - LAST_REQUESTS_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_an_unused_connection_has_time_to_notice() {
        let shutdown = Shutdown::new();
        let (draining, began) = (Draining::new(DRAIN, &shutdown), Instant::now());
        let _unaware = draining.begin_connection();
        shutdown.request();
        draining.over().await;
        assert_eq!(began.elapsed(), MINUTE + QUIET_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_service_waits_for_running_requests_only_and_for_a_short_time() {
        let shutdown = Shutdown::new();
        let (draining, began) = (Draining::new(DRAIN, &shutdown), Instant::now());
        let _running = draining.begin_request();
        shutdown.request_after_failure();
        draining.over().await;
        assert_eq!((began.elapsed(), draining.deadline() - began), (Duration::ZERO, TIMEOUT_AFTER_FAILURE));
        assert_eq!(DRAIN.longest_after(&shutdown), TIMEOUT_AFTER_FAILURE);
    }
}
