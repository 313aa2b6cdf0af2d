//! Waits for the previous processes of a data directory. After a kill -9 the kernel ends an old backend, which takes it a
//! moment, and two backends must never use the same files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::child::{pidfd, wait};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until no process uses `dir`. Each backend here has its data directory as current directory.
pub(crate) async fn wait_for_exit(dir: &Path) -> Result<()> {
    let dir = dir.canonicalize().with_context(|| format!("finding {}", dir.display()))?;
    tokio::task::spawn_blocking(move || users_of(&dir).try_for_each(|pid| wait_for(pid, &dir))).await?
}

fn users_of(dir: &Path) -> impl Iterator<Item = u32> + '_ {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(move |entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (fs::read_link(entry.path().join("cwd")).ok()? == dir && pid != std::process::id()).then_some(pid)
    })
}

fn wait_for(pid: u32, dir: &Path) -> Result<()> {
    // Fails if the process has exited meanwhile.
    let Ok(handle) = pidfd(pid) else { return Ok(()) };
    if !wait(&handle, TIMEOUT) {
        bail!("process {pid} still uses {}; end it, or choose another directory", dir.display());
    }
    Ok(())
}
