//! A private Postgres server.

mod certificate;
mod data_dir;
mod initialise;
mod readiness_probe;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use crate::account::Account;
use crate::child::Child;
use crate::data::{Data, prepare};
use crate::dirs::TempDir;
use crate::port;
use crate::programs::{self, Source};
use crate::progress::{Progress, Step};
use crate::secret;

pub use certificate::IssuedCertificate;

const NAME: &str = "Postgres";
/// Recovery after a crash can take long.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Options of a start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The location of its data.
    pub data: Data,
    /// Its port on loopback; 0 chooses a free one.
    pub port: u16,
    pub max_connections: u32,
    /// The log file; by default `log` beside the data.
    pub log: Option<PathBuf>,
    /// The source of the program.
    pub source: Source,
    /// Turns TLS on.
    pub certificate: Option<IssuedCertificate>,
    /// Further settings, as `name=value`. They override those of this module.
    pub settings: Vec<String>,
}

impl Options {
    /// Options for tests: temporary, on a free port, with enough connections for many pools.
    #[must_use]
    pub fn temporary() -> Self {
        Self {
            data: Data::Temporary,
            port: 0,
            max_connections: 300,
            log: None,
            source: Source::Any,
            certificate: None,
            settings: Vec::new(),
        }
    }
}

/// A running Postgres. Dropping it stops it.
#[derive(Debug)]
pub struct Postgres {
    child: Child,
    port: u16,
    password: String,
    data: PathBuf,
    // Declared after the child, so that it is deleted once the child has exited.
    _temporary: Option<TempDir>,
}

impl Postgres {
    /// Starts the server and waits until it is ready. Creates an empty database first if the directory has none. Fails if
    /// the program can't be found or fetched, if another process uses the directory, or if the server exits; the error
    /// then contains the end of its log.
    ///
    /// If this process is root, the server runs as `postgres` or else as the user `nobody`. If that user can't reach the
    /// directory, the data is below /var/lib/web-runtime, and a link named `moved` in the directory points to it.
    pub async fn start(options: Options, progress: &Progress) -> Result<Self> {
        let account = Account::for_postgres();
        let (source, reporter) = (options.source, progress.clone());
        let programs = tokio::task::spawn_blocking(move || programs::postgres(source, &reporter)).await??;
        let (requested, temporary) = options.data.open("postgres")?;
        let dir = data_dir::resolve(&requested, account.as_ref())?;
        if temporary.is_some() {
            initialise::from_template(&programs, &dir, account, progress).await?;
        } else {
            initialise::in_place(&programs, &dir, account, progress).await?;
        }
        let data = prepare(&dir).await?;
        initialise::remove_stale_pid_file(&data)?;
        let password = secret::read(&dir.join("password"))?;
        let log = options.log.clone().unwrap_or_else(|| dir.join("log"));
        if let Some(issued) = &options.certificate {
            issued.write(&data, account.as_ref())?;
        }

        progress.report(Step::Starting { name: NAME });
        let (child, port) = port::start_on(options.port, async |port| {
            let mut command = Command::new(&programs.server);
            if let Some(account) = account {
                account.run(&mut command);
            }
            command.arg("-D").arg(&data);
            for setting in settings(&options, port, temporary.is_some()) {
                command.args(["-c", &setting]);
            }
            // SIGTERM (smart shutdown) would wait for clients. Temporary data needs no checkpoint.
            let stop_signal = if temporary.is_some() { Signal::QUIT } else { Signal::INT };
            let child = Child::spawn(NAME, command, stop_signal, &log)?;
            child
                .wait_until_ready(START_TIMEOUT, async || {
                    readiness_probe::is_ready(child.pid(), port, &data).await
                })
                .await?;
            Ok((child, port))
        })
        .await?;
        progress.report(Step::Ready { name: NAME });
        Ok(Self { child, port, password, data, _temporary: temporary })
    }

    /// Returns the URL of its administrative database, `postgres://…`, with the password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/postgres", self.password, self.port)
    }

    /// Returns the server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Returns its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the directory of its data, which its unprivileged user owns.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data
    }

    /// Waits until the server exits by itself.
    pub async fn exited(&self) -> Option<ExitStatus> {
        self.child.exited().await
    }

    /// Stops it. Persistent data is written out first.
    pub async fn stop(self) -> Result<()> {
        self.child.stop().await.context("stopping Postgres")
    }
}

/// Postgres's default, and enough for tests.
const MIN_SHARED_MB: u64 = 128;
/// Enough for the working set of a small installation.
const MAX_SHARED_MB: u64 = 512;

/// Returns the size of shared memory: a quarter of the machine's, as Postgres's manual advises.
fn shared_mb() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = u64::from(machine.mem_unit).saturating_mul(machine.totalram);
    (bytes / 4 / (1 << 20)).clamp(MIN_SHARED_MB, MAX_SHARED_MB)
}

fn settings(options: &Options, port: u16, temporary: bool) -> Vec<String> {
    let mut settings = vec![
        format!("port={port}"),
        format!("max_connections={}", options.max_connections),
        "listen_addresses=127.0.0.1".to_owned(),
        "unix_socket_directories=".to_owned(),
        "password_encryption=scram-sha-256".to_owned(),
        format!("shared_buffers={}MB", if temporary { MIN_SHARED_MB } else { shared_mb() }),
        "timezone=UTC".to_owned(),
        "log_timezone=UTC".to_owned(),
    ];
    if options.certificate.is_some() {
        settings.extend(["ssl=on", "ssl_cert_file=tls.pem", "ssl_key_file=tls.key"].map(str::to_owned));
    }
    if temporary {
        // Temporary data needn't survive a crash, so nothing is flushed to disk.
        let fast = [
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "wal_level=minimal",
            "max_wal_senders=0",
        ];
        settings.extend(fast.map(str::to_owned));
    }
    settings.extend(options.settings.iter().cloned());
    settings
}
