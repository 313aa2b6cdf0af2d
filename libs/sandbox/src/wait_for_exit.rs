//! Waiting until a data folder's former inhabitants are gone. After a kill -9 the old backend is told to end
//! by the kernel, but that takes it a moment; two of them on the same files must never be.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::child::{pidfd, wait};

const LIMIT: Duration = Duration::from_secs(30);

/// Waits until no process works in `dir`: each backend here has its data folder as current directory.
pub(crate) async fn wait_for_exit(dir: &Path) -> Result<()> {
    let dir = dir.canonicalize().with_context(|| format!("finding {}", dir.display()))?;
    tokio::task::spawn_blocking(move || inhabitants(&dir).try_for_each(|pid| see_off(pid, &dir))).await?
}

fn inhabitants(dir: &Path) -> impl Iterator<Item = u32> + '_ {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(move |entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (fs::read_link(entry.path().join("cwd")).ok()? == dir && pid != std::process::id()).then_some(pid)
    })
}

fn see_off(pid: u32, dir: &Path) -> Result<()> {
    // One that has ended meanwhile is no trouble.
    let Ok(handle) = pidfd(pid) else { return Ok(()) };
    if !wait(&handle, LIMIT) {
        bail!("process {pid} still works in {}; end it, or take another folder", dir.display());
    }
    Ok(())
}
