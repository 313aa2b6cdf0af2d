//! Where a Postgres's files really lie. Its unprivileged user must walk there, and a folder made by root may
//! be closed to it (a clone below /root, a private temporary folder).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::account::Account;

const ELSEWHERE: &str = "/var/lib/web-runtime";
const LINK: &str = "moved";

/// The folder for the files of the wanted one: itself, or a place elsewhere that its link leads to.
pub(super) fn settle(wanted: &Path, account: Option<&Account>) -> Result<PathBuf> {
    fs::create_dir_all(wanted).with_context(|| format!("creating {}", wanted.display()))?;
    let wanted = wanted.canonicalize()?;
    if account.is_none_or(|account| account.reaches(&wanted)) {
        return Ok(wanted);
    }
    let name: String =
        hex::encode(Sha256::digest(wanted.as_os_str().as_encoded_bytes())).chars().take(16).collect();
    let real = Path::new(ELSEWHERE).join(name);
    let link = wanted.join(LINK);
    if fs::read_link(&link).is_ok_and(|target| target == real) && real.is_dir() {
        return Ok(real);
    }
    // Without our link, the folder is new, and what lies elsewhere belonged to one of the same name.
    remove(&real)?;
    fs::create_dir_all(&real).with_context(|| format!("creating {}", real.display()))?;
    symlink(&real, &link).with_context(|| format!("linking {}", link.display()))?;
    Ok(real)
}

/// Deletes a Postgres's folder, and what of it lies elsewhere. Nothing may run in it.
///
/// # Errors
/// Something of it can't be deleted.
pub fn erase(dir: &Path) -> Result<()> {
    if let Ok(real) = fs::read_link(dir.join(LINK))
        && real.starts_with(ELSEWHERE)
    {
        remove(&real)?;
    }
    remove(dir)
}

fn remove(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", dir.display()))
        }
        _ => Ok(()),
    }
}
