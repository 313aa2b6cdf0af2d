//! A private Postgres server.

mod data_dir;
mod initialise;
mod ready;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use crate::account::Account;
use crate::child::Child;
use crate::dirs::TempDir;
use crate::port;
use crate::programs::{self, Source};
use crate::progress::{Progress, Step};
use crate::wait_for_exit::wait_for_exit;
use crate::{Data, secret};

const WHAT: &str = "Postgres";
/// Recovery after a crash can take a while.
const PATIENCE: Duration = Duration::from_secs(120);

/// How to start Postgres.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where its data lives.
    pub data: Data,
    /// Its port on loopback; 0 for a free one.
    pub port: u16,
    /// Most clients at a time.
    pub max_connections: u32,
    /// Its log; by default `log` beside the data.
    pub log: Option<PathBuf>,
    /// Where the program comes from.
    pub source: Source,
}

impl Options {
    /// For tests: temporary, on a free port, with room for many pools.
    #[must_use]
    pub fn temporary() -> Self {
        Self { data: Data::Temporary, port: 0, max_connections: 300, log: None, source: Source::Any }
    }
}

/// A running Postgres. Dropped, it is stopped.
#[derive(Debug)]
pub struct Postgres {
    child: Child,
    port: u16,
    password: String,
    // After the child: it goes once nobody lives in it.
    _temporary: Option<TempDir>,
}

impl Postgres {
    /// Starts it, making an empty database first if the folder holds none, and waits until it answers.
    ///
    /// As root it runs as `postgres` or else `nobody`; if that user can't reach the folder, the data lies
    /// below /var/lib/web-runtime and a link named `moved` in the folder leads there.
    ///
    /// # Errors
    /// No program can be had; the folder is in use; the server ends instead of answering (its log's end is
    /// in the message).
    pub async fn start(options: Options, progress: &Progress) -> Result<Self> {
        let account = Account::for_postgres();
        let teller = progress.clone();
        let source = options.source;
        let programs = tokio::task::spawn_blocking(move || programs::postgres(source, &teller)).await??;
        let (wanted, temporary) = options.data.folder("postgres")?;
        let home = data_dir::resolve(&wanted, account.as_ref())?;
        if temporary.is_some() {
            initialise::from_template(&programs, &home, account, progress).await?;
        } else {
            initialise::in_place(&programs, &home, account, progress).await?;
        }
        let data = home.join("data");
        wait_for_exit(&data).await?;
        initialise::forget_recycled_process(&data)?;
        let password = secret::read(&home.join("password"))?;
        let log = options.log.clone().unwrap_or_else(|| home.join("log"));

        progress.report(Step::Starting { what: WHAT });
        let (child, port) = port::start_on(options.port, async |port| {
            let mut command = Command::new(&programs.server);
            if let Some(account) = account {
                account.run(&mut command);
            }
            command.arg("-D").arg(&data);
            for setting in settings(&options, port, temporary.is_some()) {
                command.args(["-c", &setting]);
            }
            // A smart shutdown (SIGTERM) would wait for the clients; what isn't kept needs no checkpoint.
            let farewell = if temporary.is_some() { Signal::QUIT } else { Signal::INT };
            let child = Child::spawn(WHAT, command, farewell, &log)?;
            child.ready(PATIENCE, async || ready::answers(child.pid(), port, &data).await).await?;
            Ok((child, port))
        })
        .await?;
        progress.report(Step::Ready { what: WHAT });
        Ok(Self { child, port, password, _temporary: temporary })
    }

    /// `postgres://…` of its administrative database, password included.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/postgres", self.password, self.port)
    }

    /// The server's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Ends it; a persistent one writes everything out first.
    ///
    /// # Errors
    /// Its end can't be seen.
    pub async fn stop(self) -> Result<()> {
        self.child.stop().await.context("stopping Postgres")
    }
}

/// Postgres' own choice, and enough for tests.
const SHARED_MB_LEAST: u64 = 128;
/// Enough for what a small installation has in use.
const SHARED_MB_MOST: u64 = 512;

/// Memory that its processes share, as its manual has it: a quarter of what the machine has.
fn shared_mb() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = u64::from(machine.mem_unit).saturating_mul(machine.totalram);
    (bytes / 4 / (1 << 20)).clamp(SHARED_MB_LEAST, SHARED_MB_MOST)
}

fn settings(options: &Options, port: u16, temporary: bool) -> Vec<String> {
    let mut settings = vec![
        format!("port={port}"),
        format!("max_connections={}", options.max_connections),
        "listen_addresses=127.0.0.1".to_owned(),
        "unix_socket_directories=".to_owned(),
        "password_encryption=scram-sha-256".to_owned(),
        format!("shared_buffers={}MB", if temporary { SHARED_MB_LEAST } else { shared_mb() }),
        "timezone=UTC".to_owned(),
        "log_timezone=UTC".to_owned(),
    ];
    if temporary {
        // Nothing survives a temporary server, so nothing has to reach the disk.
        let fast = [
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "wal_level=minimal",
            "max_wal_senders=0",
        ];
        settings.extend(fast.map(str::to_owned));
    }
    settings
}
