//! Supervision of the services' processes. A process that exits is restarted: at once after a long run, else after a backoff
//! that grows while it keeps exiting early.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use sandbox::child::Child;
use service::Shutdown;
use tokio::sync::Mutex;

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
    let mut backoff = Duration::ZERO;
    loop {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("service").args(&process.arguments);
        let child = Child::spawn(process.name, command, rustix::process::Signal::TERM, &process.log)?;
        let began = Instant::now();
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
        backoff =
            if began.elapsed() > STABLE_AFTER { Duration::ZERO } else { (backoff * 2).min(MAX_BACKOFF) };
        #[expect(clippy::disallowed_methods, reason = "the backoff before a restart")]
        let paused = shutdown.unless_requested(tokio::time::sleep(backoff)).await;
        if paused.is_none() {
            return Ok(());
        }
        backoff = backoff.max(Duration::from_millis(100));
    }
}
