//! Supervises one backend for another process: starts it in a temporary directory, announces it in one line of JSON, and
//! deletes it with its data when standard input closes. The input closes however the other process ends.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _, Write as _};

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::pebble::{self, Pebble};
use crate::programs::Source;
use crate::progress::Progress;
use crate::{clickhouse, postgres, redis};

/// A backend that can be supervised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Backend {
    /// Postgres, without fsync
    Postgres,
    /// Redis, saving nothing
    Redis,
    /// ClickHouse, or its HTTP interface over libchdb
    Clickhouse,
}

/// The announcement of a ready backend.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Announcement {
    /// The backend's URL. That of Postgres contains user and password.
    pub url: String,
    /// ClickHouse's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// ClickHouse's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The backend's process id.
    pub pid: u32,
}

/// Runs a backend until standard input closes or SIGTERM or SIGINT arrives.
pub async fn run(
    backend: Backend,
    source: Source,
    http_command: Vec<OsString>,
    progress: &Progress,
) -> Result<()> {
    let stop_requested = stop_requested()?;
    tokio::pin!(stop_requested);
    // A cancelled start removes its child process and directory.
    let backend = tokio::select! {
        () = &mut stop_requested => return Ok(()),
        started = SupervisedBackend::start(backend, source, http_command, progress) => started?,
    };
    announce(&backend.announcement())?;
    stop_requested.await;
    backend.stop().await
}

/// Runs an ACME server with a DNS server of its own, until the same.
pub async fn run_pebble() -> Result<()> {
    let stop_requested = stop_requested()?;
    tokio::pin!(stop_requested);
    let pebble = tokio::select! {
        () = &mut stop_requested => return Ok(()),
        started = async { Pebble::start(&pebble::Options::default()).await } => started?,
    };
    announce(&pebble.announcement())?;
    stop_requested.await;
    drop(pebble);
    Ok(())
}

/// Returns a future that ends when standard input closes, or with SIGTERM or SIGINT.
fn stop_requested() -> Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let input_closed = input_closed()?;
    Ok(async move {
        tokio::select! {
            _ = input_closed => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

enum SupervisedBackend {
    Postgres(postgres::Postgres),
    Redis(redis::Redis),
    ClickHouse(clickhouse::ClickHouse),
}

impl SupervisedBackend {
    async fn start(
        backend: Backend,
        source: Source,
        http_command: Vec<OsString>,
        progress: &Progress,
    ) -> Result<Self> {
        Ok(match backend {
            Backend::Postgres => {
                let options = postgres::Options { source, ..postgres::Options::temporary() };
                Self::Postgres(postgres::Postgres::start(options, progress).await?)
            }
            Backend::Redis => {
                let options = redis::Options { source, ..redis::Options::temporary() };
                Self::Redis(redis::Redis::start(options, progress).await?)
            }
            Backend::Clickhouse => {
                let options = clickhouse::Options { source, ..clickhouse::Options::temporary(http_command) };
                Self::ClickHouse(clickhouse::ClickHouse::start(options, progress).await?)
            }
        })
    }

    fn announcement(&self) -> Announcement {
        match self {
            Self::Postgres(one) => {
                Announcement { url: one.url(), user: None, password: None, pid: one.pid() }
            }
            Self::Redis(one) => Announcement { url: one.url(), user: None, password: None, pid: one.pid() },
            Self::ClickHouse(one) => Announcement {
                url: one.url(),
                user: Some(one.user().to_owned()),
                password: Some(one.password().to_owned()),
                pid: one.pid(),
            },
        }
    }

    async fn stop(self) -> Result<()> {
        match self {
            Self::Postgres(one) => one.stop().await,
            Self::Redis(one) => one.stop().await,
            Self::ClickHouse(one) => one.stop().await,
        }
    }
}

/// Writes the announcement, and nothing after it.
fn announce(announcement: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, announcement)?;
    out.write_all(b"\n")?;
    out.flush()?;
    // The cleanup must not keep a test's output pipe open.
    if !std::io::stderr().is_terminal() {
        rustix::stdio::dup2_stderr(std::fs::File::options().write(true).open("/dev/null")?)?;
    }
    Ok(())
}

/// Resolves when standard input closes. Reads on a thread of its own: a blocked read can't be cancelled, and the process
/// may exit during it.
fn input_closed() -> Result<oneshot::Receiver<()>> {
    let (closed, receiver) = oneshot::channel();
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut ignored = [0; 256];
        while matches!(std::io::stdin().lock().read(&mut ignored), Ok(1..)) {}
        let _receiver_dropped = closed.send(());
    })?;
    Ok(receiver)
}
