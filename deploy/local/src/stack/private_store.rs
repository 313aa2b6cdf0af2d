//! The stores that the runner starts itself: their options, and a restart on the same port.

use std::ffi::OsString;
use std::process::ExitStatus;

use anyhow::Result;
use sandbox::clickhouse::ClickHouse;
use sandbox::postgres::Postgres;
use sandbox::programs::Source;
use sandbox::progress::Progress;
use sandbox::redis::Redis;
use sandbox::{Data, clickhouse, postgres, redis};

use crate::folder::Folder;

/// A running store with the options to start it again.
#[derive(Debug)]
pub(crate) enum PrivateStore {
    Postgres(Postgres, postgres::Options),
    Redis(Redis, redis::Options),
    ClickHouse(ClickHouse, clickhouse::Options),
}

impl PrivateStore {
    pub(crate) async fn start_postgres(folder: &Folder, progress: &Progress) -> Result<Self> {
        let options = postgres::Options {
            data: Data::Persistent(folder.part("postgres")),
            port: 0,
            max_connections: 200,
            log: Some(folder.logs()?.join("postgres.log")),
            source: Source::Any,
            certificate: None,
            settings: Vec::new(),
        };
        let server = Postgres::start(options.clone(), progress).await?;
        let port = server.port();
        Ok(Self::Postgres(server, postgres::Options { port, ..options }))
    }

    pub(crate) async fn start_redis(folder: &Folder, progress: &Progress) -> Result<Self> {
        let options = redis::Options {
            data: Data::Persistent(folder.part("redis")),
            port: 0,
            log: Some(folder.logs()?.join("redis.log")),
            source: Source::Any,
        };
        let server = Redis::start(options.clone(), progress).await?;
        let port = server.port();
        Ok(Self::Redis(server, redis::Options { port, ..options }))
    }

    pub(crate) async fn start_clickhouse(folder: &Folder, progress: &Progress) -> Result<Self> {
        let http_command: Vec<OsString> = vec![std::env::current_exe()?.into(), "clickhouse-http".into()];
        let options = clickhouse::Options {
            data: Data::Persistent(folder.part("clickhouse")),
            port: 0,
            log: Some(folder.logs()?.join("clickhouse.log")),
            source: Source::Any,
            http_command,
            max_concurrent: 4,
            // Merges and recomputations may be delayed; visitors' requests must not be.
            niceness: 5,
            backups: None,
        };
        let server = ClickHouse::start(options.clone(), progress).await?;
        let port = server.port();
        Ok(Self::ClickHouse(server, clickhouse::Options { port, ..options }))
    }

    /// Returns the name on the command line and of its log.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Postgres(..) => "postgres",
            Self::Redis(..) => "redis",
            Self::ClickHouse(..) => "clickhouse",
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Postgres(server, _) => server.pid(),
            Self::Redis(server, _) => server.pid(),
            Self::ClickHouse(server, _) => server.pid(),
        }
    }

    /// Waits until the server exits by itself.
    pub(crate) async fn exited(&self) -> Option<ExitStatus> {
        match self {
            Self::Postgres(server, _) => server.exited().await,
            Self::Redis(server, _) => server.exited().await,
            Self::ClickHouse(server, _) => server.exited().await,
        }
    }

    /// Starts an exited server again on its data and its port, so that the services' settings stay valid.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        let progress = Progress::silent();
        match self {
            Self::Postgres(server, options) => *server = Postgres::start(options.clone(), &progress).await?,
            Self::Redis(server, options) => *server = Redis::start(options.clone(), &progress).await?,
            Self::ClickHouse(server, options) => {
                *server = ClickHouse::start(options.clone(), &progress).await?;
            }
        }
        Ok(())
    }

    /// Stops the server. Its data is written out first.
    pub(crate) async fn stop(self) -> Result<()> {
        match self {
            Self::Postgres(server, _) => server.stop().await,
            Self::Redis(server, _) => server.stop().await,
            Self::ClickHouse(server, _) => server.stop().await,
        }
    }
}
