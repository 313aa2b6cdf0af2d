//! The directory of a backend's data.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::dirs::TempDir;
use crate::wait_for_exit::wait_for_exit;

/// The location of a backend's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// This directory, created if missing. The next start finds the data again.
    Persistent(PathBuf),
    /// A directory that is deleted with the backend. Its data needn't survive a crash.
    Temporary,
}

impl Data {
    /// Returns the backend's directory, and the guard that deletes it if it is temporary.
    pub(crate) fn open(&self, kind: &str) -> Result<(PathBuf, Option<TempDir>)> {
        match self {
            Self::Persistent(dir) => Ok((dir.clone(), None)),
            Self::Temporary => {
                let temporary = TempDir::new(kind)?;
                Ok((temporary.path.clone(), Some(temporary)))
            }
        }
    }
}

/// Returns `data` in a backend's directory, created if missing, once no process uses it.
pub(crate) async fn prepare(dir: &Path) -> Result<PathBuf> {
    let data = dir.join("data");
    std::fs::create_dir_all(&data).with_context(|| format!("creating {}", data.display()))?;
    wait_for_exit(&data).await?;
    Ok(data)
}
