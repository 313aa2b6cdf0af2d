//! The data directory of a local run: its files and its lock.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The data directory. Only its owner can read its secrets.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

/// The lock of the process that runs in the directory. The kernel releases it when the process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Folder {
    /// Opens the directory. Creates it if it is missing.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        Ok(Self(dir.canonicalize()?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the directory of logs. Creates it if it is missing.
    pub(crate) fn logs(&self) -> Result<PathBuf> {
        let logs = self.part("logs");
        fs::create_dir_all(&logs)?;
        // Postgres may run as another user and writes its log here.
        fs::set_permissions(&logs, fs::Permissions::from_mode(0o755))?;
        Ok(logs)
    }

    /// Locks the directory. Returns `None` if another process holds the lock.
    pub(crate) fn lock(&self) -> Result<Option<Lock>> {
        let file = File::create(self.part("lock")).context("creating the lock file")?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error).context("locking the data directory"),
        }
    }

    /// Returns the message for a start in a directory that another process uses.
    pub(crate) fn already_in_use(&self) -> String {
        format!("something already runs in {}; see `status`, or stop it with `down`", self.path().display())
    }

    /// Writes a file atomically. Only its owner can read it.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let (path, partial) = (self.part(name), self.part(&format!("{name}.partial")));
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&partial, &path).with_context(|| format!("writing {}", path.display()))
    }

    /// Writes a value as JSON.
    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        self.write(name, &format!("{}\n", serde_json::to_string_pretty(value)?))
    }

    /// Reads a value from JSON. Returns `None` if the file is missing.
    pub(crate) fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let path = self.part(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(
                serde_json::from_slice(&bytes).with_context(|| format!("reading {}", path.display()))?,
            )),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        // Best effort: the next run overwrites a remaining file.
        let _missing = fs::remove_file(self.part(name));
    }
}
