//! One token says "stop": whoever holds it can ask for it and wait for it. Signals, a component that died and a
//! test that is done all take this same path.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A request to stop, shared by all its clones. It can't be taken back.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// A token nobody has asked to stop yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everything that holds this token to stop.
    pub fn request(&self) {
        self.0.cancel();
    }

    /// Whether stopping has been asked for.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until stopping is asked for. The future owns its part of the token.
    pub fn requested(&self) -> WaitForCancellationFutureOwned {
        self.0.clone().cancelled_owned()
    }

    /// A token that is stopped with this one, but can be stopped alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Runs `work` until it ends or stopping is asked for; `None` means it was cut off.
    pub async fn unless_requested<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.0.run_until_cancelled(work).await
    }

    /// Makes SIGTERM and SIGINT ask this token to stop. A second signal ends the process the hard way, which is
    /// what somebody who presses Ctrl-C twice means.
    ///
    /// # Errors
    /// If the signal handlers can't be installed.
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
                    tracing::warn!("second signal: stopping at once");
                    std::process::exit(130);
                }
                tracing::info!("signal received: shutting down");
                token.request();
            }
        });
        Ok(())
    }
}
