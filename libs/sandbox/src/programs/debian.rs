//! Programs of Debian's packages for tests, unpacked into the user's cache without being installed. apt verifies what it
//! downloads.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::dirs;

/// An unpacked package with the libraries that are not installed.
#[derive(Debug, Clone)]
pub(crate) struct Unpacked {
    root: PathBuf,
}

impl Unpacked {
    /// Returns a program, such as `usr/bin/pebble`.
    pub(crate) fn program(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns the value of `LD_LIBRARY_PATH` for its programs.
    pub(crate) fn library_path(&self) -> Result<OsString> {
        let entries = fs::read_dir(self.root.join("usr/lib"))?;
        let folders = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        Ok(std::env::join_paths(folders)?)
    }
}

/// Unpacks a package unless the cache has it.
pub(crate) fn unpacked(package: &str) -> Result<Unpacked> {
    let root = dirs::cache()?.join(format!("{package}-debian"));
    if !root.is_dir() {
        let lock = File::create(root.with_extension("lock"))?;
        lock.lock()?;
        if !root.is_dir() {
            let fetched = download(package, &root);
            fetched.with_context(|| {
                format!("{package} can't be had for tests (on Debian: apt-get install {package})")
            })?;
        }
    }
    Ok(Unpacked { root })
}

/// Downloads and unpacks a package and its libraries. Only a complete folder gets its final name.
fn download(package: &str, root: &Path) -> Result<()> {
    let partial = root.with_extension("partial");
    dirs::remove(&partial)?;
    fs::create_dir(&partial)?;
    let fetched = (|| {
        let unpacked = partial.join("unpacked");
        let mut wanted = vec![package.to_owned()];
        let mut fetched = BTreeSet::new();
        while let Some(package) = wanted.pop() {
            if !fetched.insert(package.clone()) {
                continue;
            }
            let folder = partial.join(&package);
            fs::create_dir(&folder)?;
            run(Command::new("apt-get").args(["download", &package]).current_dir(&folder))?;
            let file = fs::read_dir(&folder)?.next().context("apt-get downloaded nothing")??.path();
            run(Command::new("dpkg").arg("-x").arg(&file).arg(&unpacked))?;
            let dependencies = run(Command::new("dpkg-deb").arg("-f").arg(&file).arg("Depends"))?;
            wanted
                .extend(libraries(&dependencies).filter(|library| !is_installed(library)).map(str::to_owned));
        }
        Ok(fs::rename(unpacked, root)?)
    })();
    dirs::remove(&partial)?;
    fetched
}

/// Returns the libraries in a list of dependencies such as `adduser, libknot13 (= 3.2.6-1)`.
fn libraries(dependencies: &str) -> impl Iterator<Item = &str> {
    let names = dependencies.split(',').filter_map(|entry| entry.split_whitespace().next());
    names.filter(|name| name.starts_with("lib"))
}

fn is_installed(package: &str) -> bool {
    let status = run(Command::new("dpkg-query").args(["--show", "--showformat=${Status}", package]));
    status.is_ok_and(|status| status.ends_with(" installed"))
}

/// Runs a program and returns its output.
fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("running {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_are_fetched_beside_a_package() {
        let depends = "adduser, libknot13 (= 3.2.6-1), libc6 (>= 2.34), lsb-base | other\n";
        assert_eq!(libraries(depends).collect::<Vec<_>>(), ["libknot13", "libc6"]);
        assert_eq!(libraries("").count(), 0);
    }
}
