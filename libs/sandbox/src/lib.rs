//! Private Postgres, Redis and ClickHouse on this machine, for local runs and for tests: found or fetched,
//! started on loopback, waited for, and gone when whoever started them is, even by kill -9.

mod account;
pub mod child;
pub mod clickhouse;
pub mod front;
pub mod hold;
pub mod places;
pub mod port;
pub mod postgres;
pub mod programs;
pub mod progress;
pub mod redis;
pub mod s3;
mod secret;
pub mod test;
mod vacant;

use std::path::PathBuf;

use places::Temporary;

/// Where a backend's data lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// In this folder, made if it is missing; the next start finds it again.
    Persistent(PathBuf),
    /// In a folder that goes with the backend, without a care for crashes.
    Temporary,
}

impl Data {
    fn folder(&self, kind: &str) -> anyhow::Result<(PathBuf, Option<Temporary>)> {
        match self {
            Self::Persistent(dir) => Ok((dir.clone(), None)),
            Self::Temporary => {
                let temporary = Temporary::new(kind)?;
                Ok((temporary.path.clone(), Some(temporary)))
            }
        }
    }
}
