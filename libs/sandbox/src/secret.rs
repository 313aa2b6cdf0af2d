//! Random bytes and passwords. The password of a data directory is a file beside the data that only its owner can read, so
//! that the next start finds it.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Returns random bytes from the kernel. Retries until there are enough.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}

/// Returns a password of 192 random bits in hexadecimal.
pub(crate) fn password() -> String {
    hex::encode(random::<24>())
}

/// Reads a password from a file.
pub(crate) fn read(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(text.trim_end().to_owned())
}

/// Reads a password from a file, or creates the file with a new one and mode 0600.
pub(crate) fn read_or_create(file: &Path) -> Result<String> {
    let created = password();
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(mut new) => {
            new.write_all(created.as_bytes()).with_context(|| format!("writing {}", file.display()))?;
            Ok(created)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(file),
        Err(error) => Err(error).with_context(|| format!("creating {}", file.display())),
    }
}
