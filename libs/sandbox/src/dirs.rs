//! Directories on this machine: the cache of fetched programs, temporary directories, and directories that another user
//! must reach.

use std::env;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;

use crate::account::Account;

/// Root's cache. It is not in /root, because the user that runs Postgres can't read that.
const ROOT_CACHE: &str = "/var/cache/web-runtime";
/// Root's directories for data that an unprivileged backend could not reach in the requested directory …
pub(crate) const RELOCATED_ROOT: &str = "/var/lib/web-runtime";
/// … and the name of the link in the requested directory that points there.
pub(crate) const RELOCATION_LINK: &str = "moved";

/// The folder of reserved ports beside the temporary directories.
pub(crate) const PORTS: &str = "ports";

/// Returns the directory of fetched programs: `WEBRUNTIME_CACHE_DIR`, else one in the user's cache. All users can read it.
pub fn cache() -> Result<PathBuf> {
    make_readable(match env::var_os("WEBRUNTIME_CACHE_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None if geteuid().is_root() => PathBuf::from(ROOT_CACHE),
        None => match env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
            Some(dir) => PathBuf::from(dir).join("web-runtime"),
            None => home_cache(),
        },
    })
}

/// Like [`cache`], but a directory that `account` can reach.
pub(crate) fn cache_readable_by(account: Option<&Account>) -> Result<PathBuf> {
    let cache = cache()?;
    match account {
        Some(account) if !account.reaches(&cache) => make_readable(PathBuf::from(ROOT_CACHE)),
        _ => Ok(cache),
    }
}

fn home_cache() -> PathBuf {
    let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    home.map_or_else(|| temporary_base().with_extension("cache"), |home| home.join(".cache/web-runtime"))
}

fn make_readable(dir: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    if fs::metadata(&dir)?.uid() == geteuid().as_raw() {
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))?;
    }
    Ok(dir)
}

pub(crate) fn temporary_base() -> PathBuf {
    env::temp_dir().join(format!("web-runtime-{}", geteuid().as_raw()))
}

/// A temporary directory. Dropping it deletes it; if this process is killed, the next one created deletes it. A lock file
/// shows whether it is in use.
#[derive(Debug)]
pub(crate) struct TempDir {
    pub(crate) path: PathBuf,
    _lock: File,
}

impl TempDir {
    pub(crate) fn new(kind: &str) -> Result<Self> {
        let base = temporary_base();
        fs::create_dir_all(&base).with_context(|| format!("creating {}", base.display()))?;
        if fs::symlink_metadata(&base)?.uid() != geteuid().as_raw() {
            bail!("{} belongs to another user; set TMPDIR to a directory of your own", base.display());
        }
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755))?;
        // Held during creation and cleanup, so that no directory is deleted between its creation and its locking.
        let gate = File::create(base.join("lock"))?;
        gate.lock()?;
        delete_abandoned(&base);
        let path = tempfile::Builder::new().prefix(&format!("{kind}-")).tempdir_in(&base)?.keep();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        let lock = File::create(path.join("lock"))?;
        lock.lock()?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if let Err(error) = erase(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "can't delete a temporary directory");
        }
    }
}

/// Deletes a backend's directory and its relocated data. No backend may be running in it.
pub fn erase(dir: &Path) -> Result<()> {
    if let Ok(relocated) = fs::read_link(dir.join(RELOCATION_LINK))
        && relocated.starts_with(RELOCATED_ROOT)
    {
        remove(&relocated)?;
    }
    remove(dir)
}

/// Deletes a directory if it exists.
pub(crate) fn remove(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", dir.display()))
        }
        _ => Ok(()),
    }
}

fn delete_abandoned(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        // The folder of reserved ports has no lock of its own: each file in it is one.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || entry.file_name() == PORTS {
            continue;
        }
        let abandoned = match File::open(entry.path().join("lock")) {
            Ok(lock) => lock.try_lock().is_ok(),
            // Partially deleted: a backend wrote to it while it was ending.
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if abandoned {
            // Best effort: the next cleanup tries again.
            let _remains = erase(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_a_killed_process_is_deleted_by_the_next_one() {
        let first = TempDir::new("test").unwrap();
        let abandoned = first.path.with_file_name(format!("test-abandoned-{}", std::process::id()));
        fs::create_dir(&abandoned).unwrap();
        File::create(abandoned.join("lock")).unwrap();
        let second = TempDir::new("test").unwrap();
        assert!(!abandoned.exists() && first.path.exists());
        let path = second.path.clone();
        drop(second);
        assert!(!path.exists());
    }
}
