//! The folder of a local run: what lies where in it, and who has it.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The folder. Its secrets are readable by its owner alone.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

/// Held by whoever runs the system in a folder; let go when it ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Folder {
    /// The folder, made if it is missing.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
        Ok(Self(dir.canonicalize()?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Where logs go.
    pub(crate) fn logs(&self) -> Result<PathBuf> {
        let logs = self.part("logs");
        fs::create_dir_all(&logs)?;
        // Postgres may run as another user and writes its log here.
        fs::set_permissions(&logs, fs::Permissions::from_mode(0o755))?;
        Ok(logs)
    }

    /// Takes the folder for this process; `None` if another runs in it.
    pub(crate) fn lock(&self) -> Result<Option<Lock>> {
        let file = File::create(self.part("lock")).context("making the lock file")?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error).context("locking the folder"),
        }
    }

    /// Writes a file whole or not at all, for its owner's eyes alone.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let (path, half) = (self.part(name), self.part(&format!("{name}.half")));
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&half, &path).with_context(|| format!("writing {}", path.display()))
    }

    /// Writes a value as JSON.
    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        self.write(name, &format!("{}\n", serde_json::to_string_pretty(value)?))
    }

    /// Reads a value from JSON; `None` if there is no such file.
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
        // Best effort: what is left over is overwritten by the next run.
        let _missing = fs::remove_file(self.part(name));
    }
}
