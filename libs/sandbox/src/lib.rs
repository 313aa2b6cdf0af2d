//! Private Postgres, Redis and ClickHouse on this machine, for local runs and for tests: found or fetched,
//! started on loopback, waited for, and gone when whoever started them is, even by kill -9.

mod account;
pub mod child;
pub mod clickhouse;
pub mod clickhouse_http;
pub mod dirs;
pub mod port;
pub mod postgres;
pub mod programs;
pub mod progress;
pub mod redis;
pub mod s3;
mod secret;
pub mod supervisor;
pub mod test;
mod wait_for_exit;

use std::path::PathBuf;

use dirs::TempDir;

/// Where a backend's data lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// In this folder, made if it is missing; the next start finds it again.
    Persistent(PathBuf),
    /// In a folder that goes with the backend, without a care for crashes.
    Temporary,
}

impl Data {
    fn folder(&self, kind: &str) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
        match self {
            Self::Persistent(dir) => Ok((dir.clone(), None)),
            Self::Temporary => {
                let temporary = TempDir::new(kind)?;
                Ok((temporary.path.clone(), Some(temporary)))
            }
        }
    }
}
