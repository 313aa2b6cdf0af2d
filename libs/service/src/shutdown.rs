//! The shutdown token. Signals, a failed component and a finished test all request shutdown through it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A shutdown token, shared by its clones. A request can't be withdrawn.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    token: CancellationToken,
    skips_drain: Arc<AtomicBool>,
    follows_failure: Arc<AtomicBool>,
}

impl Shutdown {
    /// A token without a request.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests shutdown.
    pub fn request(&self) {
        self.token.cancel();
    }

    /// Requests shutdown without a drain period: connections are no longer accepted, and running requests are finished.
    pub fn request_without_drain(&self) {
        self.skips_drain.store(true, Ordering::SeqCst);
        self.request();
    }

    /// Requests shutdown because a part of the service has died: without a drain period, and with little time for running
    /// requests, which may depend on that part.
    pub fn request_after_failure(&self) {
        self.follows_failure.store(true, Ordering::SeqCst);
        self.request_without_drain();
    }

    /// Returns whether the drain period is skipped.
    #[must_use]
    pub fn skips_drain(&self) -> bool {
        self.skips_drain.load(Ordering::SeqCst)
    }

    pub(crate) fn follows_failure(&self) -> bool {
        self.follows_failure.load(Ordering::SeqCst)
    }

    /// Returns whether shutdown has been requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until shutdown is requested. The future owns its share of the token.
    pub fn requested(&self) -> WaitForCancellationFutureOwned {
        self.token.clone().cancelled_owned()
    }

    /// Returns a token that is requested together with this one, but can also be requested alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { token: self.token.child_token(), ..self.clone() }
    }

    /// Runs `work` until it ends or shutdown is requested. Returns `None` if it was cancelled.
    pub async fn unless_requested<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.token.run_until_cancelled(work).await
    }

    /// Requests shutdown on SIGTERM, and on SIGINT without a drain period: no balancer waits for an operator who presses
    /// Ctrl-C. A second signal exits the process at once, as an operator who presses it twice expects.
    pub fn on_signals(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let token = self.clone();
        tokio::spawn(async move {
            loop {
                let skips_drain = tokio::select! {
                    _ = terminate.recv() => false,
                    _ = interrupt.recv() => true,
                };
                if token.is_requested() {
                    tracing::warn!("received a second signal: exiting at once");
                    std::process::exit(130);
                }
                tracing::info!("received a signal: shutting down");
                if skips_drain {
                    token.request_without_drain();
                } else {
                    token.request();
                }
            }
        });
        Ok(())
    }
}
