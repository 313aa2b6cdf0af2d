//! The actual directory of Postgres's files. Its unprivileged user must be able to reach them, and can't enter every
//! directory of root (a clone below /root, a private temporary directory).

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::account::Account;
use crate::dirs::{RELOCATED_ROOT, RELOCATION_LINK, remove};

/// The file that names the requested directory.
const ORIGIN: &str = "of";

/// Returns the directory of the files: the requested one, or a relocated one that its link points to.
pub(super) fn resolve(requested: &Path, account: Option<&Account>) -> Result<PathBuf> {
    fs::create_dir_all(requested).with_context(|| format!("creating {}", requested.display()))?;
    let requested = requested.canonicalize()?;
    if account.is_none_or(|account| account.reaches(&requested)) {
        return Ok(requested);
    }
    let name: String =
        hex::encode(Sha256::digest(requested.as_os_str().as_encoded_bytes())).chars().take(16).collect();
    let real = Path::new(RELOCATED_ROOT).join(name);
    let link = requested.join(RELOCATION_LINK);
    if fs::read_link(&link).is_ok_and(|target| target == real) && real.is_dir() {
        return Ok(real);
    }
    // Without our link the directory is new, and existing relocated files belonged to an earlier one of the same name.
    remove(&real)?;
    delete_orphaned(Path::new(RELOCATED_ROOT), &env::temp_dir());
    fs::create_dir_all(&real).with_context(|| format!("creating {}", real.display()))?;
    fs::write(real.join(ORIGIN), requested.as_os_str().as_bytes())?;
    symlink(&real, &link).with_context(|| format!("linking {}", link.display()))?;
    Ok(real)
}

/// Deletes relocated files of directories below `temporary` that no longer exist, such as those of tests and benchmarks. A
/// missing directory anywhere else may be on a disk that is not mounted now.
fn delete_orphaned(relocated: &Path, temporary: &Path) {
    let Ok(temporary) = temporary.canonicalize() else { return };
    for entry in fs::read_dir(relocated).into_iter().flatten().flatten() {
        let Ok(origin) = fs::read(entry.path().join(ORIGIN)) else { continue };
        let origin = Path::new(OsStr::from_bytes(&origin));
        if origin.starts_with(&temporary) && origin.try_exists().is_ok_and(|exists| !exists) {
            // Best effort: the next start tries again.
            let _remains = remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletes_relocated_files_of_missing_temporary_directories() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (relocated, temporary) = (base.join("relocated"), base.join("temporary"));
        let living = temporary.join("living");
        fs::create_dir_all(&living).unwrap();
        let dirs =
            [("living", living), ("gone", temporary.join("gone")), ("unmounted", base.join("unmounted"))];
        for (name, origin) in dirs {
            fs::create_dir_all(relocated.join(name)).unwrap();
            fs::write(relocated.join(name).join(ORIGIN), origin.as_os_str().as_bytes()).unwrap();
        }
        fs::create_dir_all(relocated.join("nameless")).unwrap();
        delete_orphaned(&relocated, &temporary);
        let mut left: Vec<_> =
            fs::read_dir(&relocated).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["living", "nameless", "unmounted"]);
    }
}
