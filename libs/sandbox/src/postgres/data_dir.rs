//! Where a Postgres's files really lie. Its unprivileged user must walk there, and a folder made by root may
//! be closed to it (a clone below /root, a private temporary folder).

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

/// Names the folder whose files lie here.
const OF: &str = "of";

/// The folder for the files of the wanted one: itself, or a place elsewhere that its link leads to.
pub(super) fn resolve(wanted: &Path, account: Option<&Account>) -> Result<PathBuf> {
    fs::create_dir_all(wanted).with_context(|| format!("creating {}", wanted.display()))?;
    let wanted = wanted.canonicalize()?;
    if account.is_none_or(|account| account.reaches(&wanted)) {
        return Ok(wanted);
    }
    let name: String =
        hex::encode(Sha256::digest(wanted.as_os_str().as_encoded_bytes())).chars().take(16).collect();
    let real = Path::new(RELOCATED_ROOT).join(name);
    let link = wanted.join(RELOCATION_LINK);
    if fs::read_link(&link).is_ok_and(|target| target == real) && real.is_dir() {
        return Ok(real);
    }
    // Without our link, the folder is new, and what lies elsewhere belonged to one of the same name.
    remove(&real)?;
    sweep(Path::new(RELOCATED_ROOT), &env::temp_dir());
    fs::create_dir_all(&real).with_context(|| format!("creating {}", real.display()))?;
    fs::write(real.join(OF), wanted.as_os_str().as_bytes())?;
    symlink(&real, &link).with_context(|| format!("linking {}", link.display()))?;
    Ok(real)
}

/// Deletes what belongs to folders that were below `temporary` and have gone, as those of tests and benchmarks do. A
/// folder anywhere else may only be on a disk that isn't there today.
fn sweep(elsewhere: &Path, temporary: &Path) {
    let Ok(temporary) = temporary.canonicalize() else { return };
    for entry in fs::read_dir(elsewhere).into_iter().flatten().flatten() {
        let Ok(of) = fs::read(entry.path().join(OF)) else { continue };
        let of = Path::new(OsStr::from_bytes(&of));
        if of.starts_with(&temporary) && of.try_exists().is_ok_and(|exists| !exists) {
            // Best effort: whoever comes next tries again.
            let _stays = remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belonged_to_a_temporary_folder_goes_when_that_has_gone() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (elsewhere, temporary) = (base.join("elsewhere"), base.join("temporary"));
        let living = temporary.join("living");
        fs::create_dir_all(&living).unwrap();
        let folders =
            [("living", living), ("gone", temporary.join("gone")), ("kept", base.join("unmounted"))];
        for (name, of) in folders {
            fs::create_dir_all(elsewhere.join(name)).unwrap();
            fs::write(elsewhere.join(name).join(OF), of.as_os_str().as_bytes()).unwrap();
        }
        fs::create_dir_all(elsewhere.join("nameless")).unwrap();
        sweep(&elsewhere, &temporary);
        let mut left: Vec<_> =
            fs::read_dir(&elsewhere).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["kept", "living", "nameless"]);
    }
}
