//! Where a Postgres's files really lie. Its unprivileged user must walk there, and a folder made by root may
//! be closed to it (a clone below /root, a private temporary folder).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::account::Account;
use crate::places::{ELSEWHERE, MOVED, remove};

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
    let link = wanted.join(MOVED);
    if fs::read_link(&link).is_ok_and(|target| target == real) && real.is_dir() {
        return Ok(real);
    }
    // Without our link, the folder is new, and what lies elsewhere belonged to one of the same name.
    remove(&real)?;
    fs::create_dir_all(&real).with_context(|| format!("creating {}", real.display()))?;
    symlink(&real, &link).with_context(|| format!("linking {}", link.display()))?;
    Ok(real)
}
