//! Random bytes and the passwords made of them. A data directory's password lies beside the data, readable
//! by its owner alone, so that the next start finds both.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Bytes from the kernel, asked again until there are enough.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}

/// A password of 192 random bits, in letters and digits.
pub(crate) fn password() -> String {
    hex::encode(random::<24>())
}

/// The password in the file.
pub(crate) fn read(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(text.trim_end().to_owned())
}

/// The password in the file, made if there is none. The file's mode is 0600.
pub(crate) fn keep(file: &Path) -> Result<String> {
    let made = password();
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(mut new) => {
            new.write_all(made.as_bytes()).with_context(|| format!("writing {}", file.display()))?;
            Ok(made)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(file),
        Err(error) => Err(error).with_context(|| format!("creating {}", file.display())),
    }
}
