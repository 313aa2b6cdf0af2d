//! Where the key of a new account goes: into a file that its owner alone may read, or onto the terminal. Programs that collect
//! output, such as those of containers, would store a printed key.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// Where a key goes.
#[derive(Debug)]
pub(crate) enum KeyOutput {
    /// Standard output.
    Printed,
    /// A new file. Dropped without [`KeyOutput::keep`], it is deleted.
    File(Option<PathBuf>),
}

impl KeyOutput {
    /// Creates the file, if one is named, so that a wrong path is found before an account is made.
    pub(crate) fn new(file: Option<&Path>, may_print: bool) -> Result<Self> {
        let Some(path) = file else {
            ensure!(
                may_print || io::stdout().is_terminal(),
                "standard output is not a terminal, so the key could end up in a log. Add --key-file FILE to write it into a \
                 new file, or --print-key to print it here"
            );
            return Ok(Self::Printed);
        };
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        created.with_context(|| format!("creating {}, which must not exist yet", path.display()))?;
        Ok(Self::File(Some(path.to_owned())))
    }

    /// Writes the key, and returns what to print in its place.
    pub(crate) fn write(&self, key: &str) -> Result<String> {
        let Self::File(Some(path)) = self else {
            return Ok(format!(
                "key        {key}\n\nThe key is shown only now. Use it as `authorization: Bearer <key>`."
            ));
        };
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).open(path)?;
            file.write_all(format!("{key}\n").as_bytes())?;
            file.sync_all()
        };
        write().with_context(|| format!("writing {}", path.display()))?;
        let path = path.display();
        Ok(format!(
            "key file   {path}\n\nThe key is only in this file. Use it as `authorization: Bearer <key>`."
        ))
    }

    /// Keeps the file: the key in it is valid now.
    pub(crate) fn keep(&mut self) {
        if let Self::File(path) = self {
            *path = None;
        }
    }
}

impl Drop for KeyOutput {
    fn drop(&mut self) {
        if let Self::File(Some(path)) = self {
            // The error that led here matters more than a file with an invalid key.
            let _ = fs::remove_file(path);
        }
    }
}
