//! The folder of backups: a subfolder for each backup with its manifest, the blobs of all, and the list of deletions.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::manifest::{FORMAT, Manifest};

const MANIFEST: &str = "manifest.json";
/// Subfolders that are no backups.
pub(super) const BLOBS: &str = "blobs";
pub(super) const DELETIONS: &str = "deletions.tsv";

/// The folder, locked: one backup, restore or expiry at a time.
#[derive(Debug)]
pub struct BackupFolder {
    path: PathBuf,
    _lock: File,
}

impl BackupFolder {
    /// Opens the folder, and creates it if it is missing.
    pub fn open(path: &Path) -> Result<Self> {
        let made = DirBuilder::new().recursive(true).mode(0o750).create(path);
        made.with_context(|| format!("creating backup.folder, {}", path.display()))?;
        let lock = path.join("lock");
        let lock = File::options()
            .create(true)
            .append(true)
            .open(&lock)
            .with_context(|| lock.display().to_string())?;
        if lock.try_lock().is_err() {
            bail!("another backup, restore or expiry uses {}: wait for its end", path.display());
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.path.join(BLOBS)
    }

    pub(super) fn deletions(&self) -> PathBuf {
        self.path.join(DELETIONS)
    }

    pub(super) fn of(&self, id: &str) -> PathBuf {
        self.path.join(id)
    }

    /// Returns the manifests of all complete backups, oldest first.
    pub fn manifests(&self) -> Result<Vec<Manifest>> {
        let mut manifests = Vec::new();
        for id in self.ids()? {
            let path = self.of(&id).join(MANIFEST);
            match fs::read(&path) {
                Ok(text) => manifests.push(parse(&text).with_context(|| path.display().to_string())?),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
        }
        Ok(manifests)
    }

    /// Returns the ids of backups that were stopped before their end.
    pub(super) fn incomplete(&self) -> Result<Vec<String>> {
        Ok(self.ids()?.into_iter().filter(|id| !self.of(id).join(MANIFEST).exists()).collect())
    }

    fn ids(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            if is_id(&name) {
                ids.push(name);
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// Creates the folder of a new backup.
    pub(super) fn create(&self, id: &str) -> Result<PathBuf> {
        let path = self.of(id);
        let created = DirBuilder::new().mode(0o750).create(&path);
        created.with_context(|| format!("creating {}", path.display()))?;
        Ok(path)
    }

    /// Writes a manifest: with it, the backup is complete.
    pub(super) fn complete(&self, manifest: &Manifest) -> Result<()> {
        let folder = self.of(&manifest.id);
        let partial = folder.join("manifest.partial");
        let mut file = File::create(&partial)?;
        serde_json::to_writer_pretty(&mut file, manifest)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&partial, folder.join(MANIFEST))?;
        File::open(&folder)?.sync_all()?;
        Ok(File::open(&self.path)?.sync_all()?)
    }

    /// Deletes a backup's folder, its manifest first.
    pub(super) fn delete(&self, id: &str) -> Result<()> {
        remove(&self.of(id).join(MANIFEST))?;
        remove(&self.of(id))
    }
}

/// Deletes a file or a folder if it exists.
pub(super) fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("deleting {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn parse(text: &[u8]) -> Result<Manifest> {
    let value: serde_json::Value = serde_json::from_slice(text)?;
    let format = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or_default();
    ensure!(
        format == u64::from(FORMAT),
        "this manifest has the format {format}, and this program reads the format {FORMAT}: use the webruntime that made the backup"
    );
    let manifest: Manifest = serde_json::from_value(value)?;
    ensure!(is_id(&manifest.id) && is_id(&manifest.full), "its ids are not those of backups");
    Ok(manifest)
}

/// Returns whether a name is that of a backup, such as `20261127T165000Z`.
pub(super) fn is_id(name: &str) -> bool {
    let shape: String = name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "00000000T000000Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_named_by_its_time() {
        assert!(is_id("20261127T165000Z"));
        for other in ["blobs", "20261127T165000", "20261127T165000Z.partial", "../../../../etc"] {
            assert!(!is_id(other), "{other}");
        }
    }
}
