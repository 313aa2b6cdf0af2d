//! The lifecycle of a service's components. Each has a name. A component that ends before shutdown is requested has died:
//! it stops the service with an error that names it. All causes share one shutdown path: the token is requested, the
//! service is no longer ready, its servers drain, then the components end that requests need, and the wait for each is
//! bounded.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};

use crate::{Drain, Shutdown};

/// The reason why a service ended without or in spite of a requested shutdown.
#[derive(Debug, thiserror::Error)]
pub enum ExitReason {
    /// A component ended before shutdown was requested.
    #[error("component `{name}` died: {reason:#}")]
    Died {
        name: &'static str,
        /// The component's error, its panic message, or that it returned.
        reason: anyhow::Error,
    },
    /// A component failed while it was shutting down.
    #[error("component `{name}` failed during shutdown: {reason:#}")]
    FailedDuringShutdown { name: &'static str, reason: anyhow::Error },
    /// Components were still running when the grace period ended, and were aborted.
    #[error("aborted after a grace period of {grace:?}: {}", names.join(", "))]
    TimedOut {
        /// Component names, sorted.
        names: Vec<&'static str>,
        grace: Duration,
    },
}

#[derive(Clone, Copy)]
struct Component {
    name: &'static str,
    stage: Stage,
}

/// When a component ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// When the last of its requests has ended.
    Server,
    /// When the servers have ended, or at once if no request needs it.
    Ordinary,
    /// When the ordinary components have ended, because it reports on them.
    Last,
}

/// The set of a service's running components.
pub struct Lifecycle {
    shutdown: Shutdown,
    stop: Shutdown,
    drained: Shutdown,
    /// The longest drain of the servers.
    drain: Drain,
    running: JoinSet<anyhow::Result<()>>,
    components: HashMap<Id, Component>,
}

impl Lifecycle {
    /// A lifecycle without components. `shutdown` is the token that stops them all.
    #[must_use]
    pub fn new(shutdown: Shutdown) -> Self {
        let (running, components) = (JoinSet::new(), HashMap::new());
        let (stop, drained) = (Shutdown::new(), Shutdown::new());
        let drain = Drain { period: Duration::ZERO, timeout: Duration::ZERO };
        Self { shutdown, stop, drained, drain, running, components }
    }

    /// Returns the token that servers wait on, and components that no request needs.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Returns the token that components wait on which requests need. It is requested after a shutdown, once every server
    /// has ended.
    #[must_use]
    pub fn stop(&self) -> Shutdown {
        self.stop.clone()
    }

    /// Returns the token that components of [`Self::spawn_last`] wait on. It is requested once every ordinary component
    /// has ended.
    #[must_use]
    pub fn drained(&self) -> Shutdown {
        self.drained.clone()
    }

    /// Starts a component that serves requests. It waits on [`Self::shutdown`] and drains.
    pub fn spawn_server<F>(&mut self, name: &'static str, drain: Drain, component: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let Drain { period, timeout } = self.drain;
        self.drain = Drain { period: period.max(drain.period), timeout: timeout.max(drain.timeout) };
        self.start(Component { name, stage: Stage::Server }, component);
    }

    /// Starts a component. If it ends before shutdown is requested, in any way, it counts as dead. It waits on
    /// [`Self::stop`] if requests need it, else on [`Self::shutdown`].
    pub fn spawn<F>(&mut self, name: &'static str, component: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        self.start(Component { name, stage: Stage::Ordinary }, component);
    }

    /// Starts a component that runs until the ordinary ones have ended. It waits on [`Self::drained`].
    pub fn spawn_last<F>(&mut self, name: &'static str, component: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        self.start(Component { name, stage: Stage::Last }, component);
    }

    fn start<F>(&mut self, component: Component, future: F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let id = self.running.spawn(future).id();
        self.components.insert(id, component);
    }

    /// Runs until shutdown is requested or a component dies, then until all have ended. Servers have their drain and `grace`,
    /// the others `grace` after them. Returns the first failure.
    pub async fn run(mut self, grace: Duration) -> Result<(), ExitReason> {
        let mut outcome = Ok(());
        let shutdown = self.shutdown.clone();
        tokio::select! {
            biased;
            () = shutdown.requested() => {}
            // Both may be true by now. A component that ends after the request has not died.
            Some((name, result)) = self.next_ended() => if shutdown.is_requested() {
                record_last(&mut outcome, name, result);
            } else {
                let reason = result.err().unwrap_or_else(|| anyhow::anyhow!("it returned"));
                tracing::error!(component = name, error = format!("{reason:#}"), "component died");
                outcome = Err(ExitReason::Died { name, reason });
                shutdown.request_after_failure();
            },
        }
        let servers_limit = self.drain.longest_after(&shutdown) + grace;
        let servers = self.end(Stage::Server, &mut outcome);
        let drained = tokio::time::timeout(servers_limit, servers).await;
        if drained.is_err() {
            tracing::error!("servers did not end in time");
        }
        self.stop.request();
        let ended = tokio::time::timeout(grace, async {
            self.end(Stage::Ordinary, &mut outcome).await;
            self.drained.request();
            self.end(Stage::Last, &mut outcome).await;
        });
        if ended.await.is_err() {
            let mut names: Vec<_> = self.components.values().map(|component| component.name).collect();
            names.sort_unstable();
            tracing::error!(?names, "components did not end in time and are aborted");
            outcome = outcome.and(Err(ExitReason::TimedOut { names, grace }));
            self.running.shutdown().await;
        }
        outcome
    }

    /// Waits until all components of a stage and of those before have ended.
    async fn end(&mut self, stage: Stage, outcome: &mut Result<(), ExitReason>) {
        while self.components.values().any(|component| component.stage <= stage) {
            let Some((name, result)) = self.next_ended().await else { return };
            record_last(outcome, name, result);
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

/// Records the result of a component that ended after shutdown was requested.
fn record_last(outcome: &mut Result<(), ExitReason>, name: &'static str, result: anyhow::Result<()>) {
    let Err(reason) = result else { return };
    tracing::error!(component = name, error = format!("{reason:#}"), "component failed during shutdown");
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
