//! Supervision of the processes of services and stores. A process that exits is restarted: at once after a long run, else
//! after a backoff that grows while it keeps exiting early.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use sandbox::child::Child;
use service::Shutdown;
use tokio::sync::Mutex;

use super::private_store::PrivateStore;
use crate::folder::Folder;
use crate::stack_file::StackFile;

/// Minimum run time after which a restart needs no backoff.
const STABLE_AFTER: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(2);

/// A supervised process.
pub(crate) struct SupervisedProcess {
    /// The name on the command line and in logs.
    pub(crate) name: &'static str,
    /// The services in this process.
    pub(crate) services: Vec<&'static str>,
    pub(crate) arguments: Vec<String>,
    /// The file of its output.
    pub(crate) log: PathBuf,
}

/// The stack file, shared by the supervisors that update it.
pub(crate) type Shared = Arc<Mutex<StackFile>>;

/// Restarts a process until `shutdown`, then stops it gracefully.
pub(crate) async fn supervise(
    process: SupervisedProcess,
    folder: Folder,
    file: Shared,
    shutdown: Shutdown,
) -> Result<()> {
    let mut backoff = Backoff::default();
    loop {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("service").args(&process.arguments);
        let child = Child::spawn(process.name, command, rustix::process::Signal::TERM, &process.log)?;
        backoff.began();
        {
            let mut file = file.lock().await;
            for name in &process.services {
                if let Some(service) = file.services.get_mut(*name) {
                    service.pid = child.pid();
                }
            }
            file.write(&folder)?;
        }
        tokio::select! {
            () = shutdown.requested() => return child.stop().await,
            status = child.exited() => {
                let status = status.map(|status| status.to_string()).unwrap_or_default();
                tracing::warn!(service = process.name, status, "a service process exited; restarting it");
            }
        }
        if !backoff.wait(&shutdown).await {
            return Ok(());
        }
    }
}

/// Restarts a store on its port until `shutdown`, then stops it.
pub(crate) async fn supervise_store(
    mut store: PrivateStore,
    folder: &Folder,
    file: &Shared,
    shutdown: &Shutdown,
) -> Result<()> {
    let mut backoff = Backoff::default();
    loop {
        backoff.began();
        {
            let mut file = file.lock().await;
            if let Some(entry) = file.stores.get_mut(store.name()) {
                entry.pid = Some(store.pid());
            }
            file.write(folder)?;
        }
        tokio::select! {
            () = shutdown.requested() => return store.stop().await,
            status = store.exited() => {
                let status = status.map(|status| status.to_string()).unwrap_or_default();
                tracing::warn!(store = store.name(), status, "a store exited; restarting it on its port");
            }
        }
        loop {
            if !backoff.wait(shutdown).await {
                return Ok(());
            }
            match shutdown.unless_requested(store.restart()).await {
                None => return Ok(()),
                Some(Ok(())) => break,
                Some(Err(error)) => {
                    tracing::warn!(store = store.name(), "the store could not be restarted: {error:#}");
                }
            }
        }
        tracing::info!(store = store.name(), pid = store.pid(), "the store is ready again");
    }
}

/// The wait before a restart.
#[derive(Default)]
struct Backoff {
    wait: Duration,
    began: Option<Instant>,
}

impl Backoff {
    /// Notes that the process runs.
    fn began(&mut self) {
        self.began = Some(Instant::now());
    }

    /// Waits before the next start. Returns `false` if a shutdown was requested.
    async fn wait(&mut self, shutdown: &Shutdown) -> bool {
        let was_stable = self.began.take().is_some_and(|began| began.elapsed() > STABLE_AFTER);
        self.wait = if was_stable { Duration::ZERO } else { (self.wait * 2).min(MAX_BACKOFF) };
        #[expect(clippy::disallowed_methods, reason = "the backoff before a restart")]
        let waited = shutdown.unless_requested(tokio::time::sleep(self.wait)).await;
        self.wait = self.wait.max(Duration::from_millis(100));
        waited.is_some()
    }
}
