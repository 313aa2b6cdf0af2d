//! pgBackRest for tests: installed, or else unpacked from Debian's package into the user's cache.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Source, debian, major_version, on_path};
use crate::account::Account;
use crate::progress::Progress;

/// The first minor version of pgBackRest 2 that knows a major version of Postgres.
const SUPPORTED_SINCE: [(u32, u32); 5] = [(14, 36), (15, 41), (16, 48), (17, 54), (18, 57)];

/// pgBackRest for the Postgres of tests.
#[derive(Debug, Clone)]
pub struct PgBackRest {
    /// The program with arguments before it, as the user that runs Postgres.
    pub as_postgres: Vec<String>,
    /// The same without a change of the user, for `archive_command`.
    pub by_postgres: Vec<String>,
}

/// Returns pgBackRest, or why it can't be had here, as without a network or for a newer Postgres.
pub fn pgbackrest() -> Result<PgBackRest> {
    let mut by_postgres = Vec::new();
    match on_path("pgbackrest") {
        Some(installed) => by_postgres.push(installed.display().to_string()),
        None => {
            let unpacked = debian::unpacked("pgbackrest")?;
            let libraries = unpacked.library_path().unwrap_or_default();
            by_postgres.push("env".to_owned());
            by_postgres.push(format!("LD_LIBRARY_PATH={}", libraries.to_string_lossy()));
            by_postgres.push(unpacked.program("usr/bin/pgbackrest").display().to_string());
        }
    }
    check_version(&by_postgres)?;
    let user = Account::for_postgres().map(Account::command_prefix).unwrap_or_default();
    Ok(PgBackRest { as_postgres: [user, by_postgres.clone()].concat(), by_postgres })
}

fn check_version(command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no program")?;
    let output = Command::new(program).args(arguments).arg("version").output()?;
    let text = String::from_utf8(output.stdout)?;
    let minor =
        text.trim().rsplit_once(" 2.").and_then(|(_, rest)| rest.split('.').next()?.parse::<u32>().ok());
    let minor = minor
        .with_context(|| format!("pgBackRest does not run: {}", String::from_utf8_lossy(&output.stderr)))?;
    let postgres = super::postgres(Source::Any, &Progress::silent())?;
    let major = major_version(&postgres.server).context("Postgres has no version")?;
    let since = SUPPORTED_SINCE.into_iter().find(|(known, _)| *known == major).map(|(_, since)| since);
    ensure!(since.is_some_and(|since| minor >= since), "pgBackRest 2.{minor} does not know Postgres {major}");
    Ok(())
}
