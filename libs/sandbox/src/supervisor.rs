//! A backend held for somebody else: started in a temporary folder, announced in one line of JSON, and gone
//! with everything it wrote when its keeper's end of our standard input closes. However the keeper dies.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _, Write as _};

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::programs::Source;
use crate::progress::Progress;
use crate::{clickhouse, postgres, redis};

/// A backend that can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Backend {
    /// Postgres, without fsync
    Postgres,
    /// Redis, saving nothing
    Redis,
    /// ClickHouse, or the front over its engine
    Clickhouse,
}

/// The line that says that a backend is ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Announcement {
    /// Where it answers. Postgres's holds account and password.
    pub url: String,
    /// ClickHouse's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// ClickHouse's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Its process.
    pub pid: u32,
}

/// Starts a backend and holds it until standard input ends, or SIGTERM or SIGINT come.
///
/// # Errors
/// It can't be started or stopped.
pub async fn run(
    backend: Backend,
    source: Source,
    http_command: Vec<OsString>,
    progress: &Progress,
) -> Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut kept = input_ends()?;
    let ending = async {
        tokio::select! {
            _ = &mut kept => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    tokio::pin!(ending);
    // Dropped half-way, a start takes its child and its folder along.
    let held = tokio::select! {
        () = &mut ending => return Ok(()),
        held = SupervisedBackend::start(backend, source, http_command, progress) => held?,
    };
    announce(&held.announcement())?;
    // A test's output pipe must not stay open for as long as we clean up after it.
    if !std::io::stderr().is_terminal() {
        rustix::stdio::dup2_stderr(std::fs::File::options().write(true).open("/dev/null")?)?;
    }
    ending.await;
    held.stop().await
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

fn announce(announcement: &Announcement) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, announcement)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Resolves when standard input ends. A thread of its own: a blocked read can't be given up, and the process
/// may end while it waits.
fn input_ends() -> Result<oneshot::Receiver<()>> {
    let (ended, end) = oneshot::channel();
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut ignored = [0; 256];
        while matches!(std::io::stdin().lock().read(&mut ignored), Ok(1..)) {}
        let _nobody_waits = ended.send(());
    })?;
    Ok(end)
}
