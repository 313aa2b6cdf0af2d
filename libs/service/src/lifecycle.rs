//! A service's components live and die together. Each registers under a name; one that ends before anybody asked
//! it to has died, and takes the service down with an error that says which. Shutdown is one path for all causes:
//! token, readiness false, components end, a bounded wait.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};

use crate::Shutdown;

/// Why a service ended other than by being asked to.
#[derive(Debug, thiserror::Error)]
pub enum ExitReason {
    /// A component ended although nobody had asked it to.
    #[error("component `{name}` died: {reason:#}")]
    Died {
        /// The component's name.
        name: &'static str,
        /// Its own error, its panic's message, or that it simply returned.
        reason: anyhow::Error,
    },
    /// A component failed while it was shutting down.
    #[error("component `{name}` failed while shutting down: {reason:#}")]
    FailedDuringShutdown {
        /// The component's name.
        name: &'static str,
        /// Its own error or its panic's message.
        reason: anyhow::Error,
    },
    /// Components were still running when the grace period ended, and were cut off.
    #[error("still running {grace:?} after shutdown was asked for, cut off: {}", names.join(", "))]
    TimedOut {
        /// The components' names, sorted.
        names: Vec<&'static str>,
        /// The time they had.
        grace: Duration,
    },
}

#[derive(Clone, Copy)]
struct Component {
    name: &'static str,
    /// Outlives the ordinary ones: it reports on them.
    last: bool,
}

/// The set of a service's running components.
pub struct Lifecycle {
    shutdown: Shutdown,
    drained: Shutdown,
    running: JoinSet<anyhow::Result<()>>,
    components: HashMap<Id, Component>,
}

impl Lifecycle {
    /// No components yet; `shutdown` is what they are all asked to stop by.
    #[must_use]
    pub fn new(shutdown: Shutdown) -> Self {
        Self { shutdown, drained: Shutdown::new(), running: JoinSet::new(), components: HashMap::new() }
    }

    /// The token components wait on.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Requested once every ordinary component has ended: what those of [`Self::spawn_last`] wait on.
    #[must_use]
    pub fn drained(&self) -> Shutdown {
        self.drained.clone()
    }

    /// Starts a component. Ending before shutdown is requested, in whatever way, counts as dying.
    pub fn spawn<F>(&mut self, name: &'static str, component: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        self.start(Component { name, last: false }, component);
    }

    /// Starts a component that goes on until the ordinary ones have ended, and waits on [`Self::drained`].
    pub fn spawn_last<F>(&mut self, name: &'static str, component: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        self.start(Component { name, last: true }, component);
    }

    fn start<F>(&mut self, component: Component, future: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let id = self.running.spawn(future).id();
        self.components.insert(id, component);
    }

    /// Runs until shutdown is requested or a component dies, then gives the rest `grace` to end.
    ///
    /// # Errors
    /// The first thing that went wrong: a component died, failed while ending, or had to be cut off.
    pub async fn run(mut self, grace: Duration) -> Result<(), ExitReason> {
        let mut outcome = Ok(());
        let shutdown = self.shutdown.clone();
        tokio::select! {
            biased;
            () = shutdown.requested() => {}
            // Both may have happened by now: who ends after the request has done as asked.
            Some((name, result)) = self.next_ended() => if shutdown.is_requested() {
                note_last(&mut outcome, name, result);
            } else {
                let reason = result.err().unwrap_or_else(|| anyhow::anyhow!("it returned"));
                tracing::error!(component = name, error = format!("{reason:#}"), "component died");
                outcome = Err(ExitReason::Died { name, reason });
                shutdown.request();
            },
        }
        let drained = tokio::time::timeout(grace, self.drain(&mut outcome)).await;
        if drained.is_err() {
            let mut names: Vec<_> = self.components.values().map(|component| component.name).collect();
            names.sort_unstable();
            tracing::error!(?names, "components didn't end in time and are cut off");
            outcome = outcome.and(Err(ExitReason::TimedOut { names, grace }));
            self.running.shutdown().await;
        }
        outcome
    }

    async fn drain(&mut self, outcome: &mut Result<(), ExitReason>) {
        loop {
            if self.components.values().all(|component| component.last) {
                self.drained.request();
            }
            let Some((name, result)) = self.next_ended().await else { return };
            note_last(outcome, name, result);
        }
    }

    async fn next_ended(&mut self) -> Option<(&'static str, anyhow::Result<()>)> {
        let (id, result) = match self.running.join_next_with_id().await? {
            Ok((id, result)) => (id, result),
            Err(error) => (error.id(), Err(panic_message(error))),
        };
        let component = self.components.remove(&id)?;
        tracing::debug!(component = component.name, "component ended");
        Some((component.name, result))
    }
}

/// How a component ended that had been asked to.
fn note_last(outcome: &mut Result<(), ExitReason>, name: &'static str, result: anyhow::Result<()>) {
    let Err(reason) = result else { return };
    tracing::error!(component = name, error = format!("{reason:#}"), "component failed while ending");
    if outcome.is_ok() {
        *outcome = Err(ExitReason::FailedDuringShutdown { name, reason });
    }
}

fn panic_message(error: JoinError) -> anyhow::Error {
    let Ok(panic) = error.try_into_panic() else { return anyhow::anyhow!("it was cancelled") };
    let message = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into());
    anyhow::anyhow!("it panicked: {message}")
}
