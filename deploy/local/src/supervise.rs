//! Keeps the services' processes alive: one that ends is started again, at once the first time, then after
//! pauses that grow while it keeps ending young.

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

/// Older than this, an end is taken as a single mishap.
const GROWN_UP: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A process to keep alive.
pub(crate) struct SupervisedProcess {
    /// What it is called, to the command line and in logs.
    pub(crate) name: &'static str,
    /// The services it holds.
    pub(crate) services: Vec<&'static str>,
    /// What it is started with.
    pub(crate) arguments: Vec<String>,
    /// Where its output goes.
    pub(crate) log: PathBuf,
}

/// The stack file, shared by those who keep it up to date.
pub(crate) type Shared = Arc<Mutex<StackFile>>;

/// Keeps one process alive until `shutdown`, then ends it in good order.
pub(crate) async fn supervise(
    kept: SupervisedProcess,
    folder: Folder,
    file: Shared,
    shutdown: Shutdown,
) -> Result<()> {
    let mut pause = Duration::ZERO;
    loop {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("service").args(&kept.arguments);
        let child = Child::spawn(kept.name, command, rustix::process::Signal::TERM, &kept.log)?;
        let began = Instant::now();
        {
            let mut file = file.lock().await;
            for name in &kept.services {
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
                tracing::warn!(service = kept.name, status, "ended by itself; starting it again");
            }
        }
        pause = if began.elapsed() > GROWN_UP { Duration::ZERO } else { (pause * 2).min(LONGEST_PAUSE) };
        #[expect(clippy::disallowed_methods, reason = "the pause before another try is the point")]
        let paused = shutdown.unless_requested(tokio::time::sleep(pause)).await;
        if paused.is_none() {
            return Ok(());
        }
        pause = pause.max(Duration::from_millis(100));
    }
}
