//! Installed programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::Postgres;
use crate::account::Account;

/// The oldest supported version of Postgres.
const MIN_POSTGRES_VERSION: u32 = 14;
/// Debian installs each version of Postgres in a directory of its own outside PATH.
const DEBIAN_POSTGRES: &str = "/usr/lib/postgresql";

/// Returns the first executable of that name on PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    path_dirs().into_iter().map(|dir| dir.join(name)).find(|file| is_executable(file))
}

/// Returns an installed Postgres of a supported version that `account` can run.
pub(super) fn postgres(account: Option<&Account>) -> Option<Postgres> {
    path_dirs().into_iter().chain(debian_dirs()).find_map(|dir| {
        // The directory of a link doesn't have the libraries, so the link is resolved.
        let server = dir.join("postgres").canonicalize().ok()?;
        let initdb = server.with_file_name("initdb");
        let usable = is_executable(&server) && is_executable(&initdb);
        let reached = account.is_none_or(|account| account.reaches(&server));
        (usable && reached && major_version(&server)? >= MIN_POSTGRES_VERSION)
            .then_some(Postgres { server, initdb })
    })
}

fn path_dirs() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

fn debian_dirs() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(DEBIAN_POSTGRES)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, dir)| dir).collect()
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns the major version of a Postgres.
pub(crate) fn major_version(server: &Path) -> Option<u32> {
    let output = Command::new(server).arg("--version").output().ok()?;
    // postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)
    let version = String::from_utf8(output.stdout).ok()?;
    version.split_whitespace().nth(2)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
