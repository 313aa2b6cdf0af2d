//! The shutdown token. Signals, a failed component and a finished test all request shutdown through it.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A shutdown token, shared by its clones. A request can't be withdrawn.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// A token without a request.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests shutdown.
    pub fn request(&self) {
        self.0.cancel();
    }

    /// Returns whether shutdown has been requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until shutdown is requested. The future owns its share of the token.
    pub fn requested(&self) -> WaitForCancellationFutureOwned {
        self.0.clone().cancelled_owned()
    }

    /// Returns a token that is requested together with this one, but can also be requested alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Runs `work` until it ends or shutdown is requested. Returns `None` if it was cancelled.
    pub async fn unless_requested<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.0.run_until_cancelled(work).await
    }

    /// Requests shutdown on SIGTERM and SIGINT. A second signal exits the process at once, as an operator who presses
    /// Ctrl-C twice expects.
    pub fn on_signals(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let token = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if token.is_requested() {
                    tracing::warn!("received a second signal: exiting at once");
                    std::process::exit(130);
                }
                tracing::info!("received a signal: shutting down");
                token.request();
            }
        });
        Ok(())
    }
}
