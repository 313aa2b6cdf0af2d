//! A private Redis server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::Data;
use crate::child::Child;
use crate::dirs::TempDir;
use crate::port;
use crate::programs::{self, Source};
use crate::progress::{Progress, Step};
use crate::wait_for_exit::wait_for_exit;

const WHAT: &str = "Redis";
/// A long append-only file takes a while to read.
const PATIENCE: Duration = Duration::from_secs(120);

/// How to start Redis.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where its data lives. Persistent data is appended and fsynced every second.
    pub data: Data,
    /// Its port on loopback; 0 for a free one.
    pub port: u16,
    /// Its log; by default `log` beside the data.
    pub log: Option<PathBuf>,
    /// Where the program comes from.
    pub source: Source,
}

impl Options {
    /// For tests: nothing saved, on a free port.
    #[must_use]
    pub fn temporary() -> Self {
        Self { data: Data::Temporary, port: 0, log: None, source: Source::Any }
    }
}

/// A running Redis. Dropped, it is stopped.
#[derive(Debug)]
pub struct Redis {
    child: Child,
    port: u16,
    // After the child: it goes once nobody lives in it.
    _temporary: Option<TempDir>,
}

impl Redis {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// No program can be had; the folder is in use; the server ends instead of answering (its log's end is
    /// in the message).
    pub async fn start(options: Options, progress: &Progress) -> Result<Self> {
        let (source, teller) = (options.source, progress.clone());
        let program = tokio::task::spawn_blocking(move || programs::redis(source, &teller)).await??;
        let (home, temporary) = options.data.folder("redis")?;
        let data = home.join("data");
        std::fs::create_dir_all(&data).with_context(|| format!("creating {}", data.display()))?;
        wait_for_exit(&data).await?;
        let log = options.log.clone().unwrap_or_else(|| home.join("log"));

        progress.report(Step::Starting { what: WHAT });
        let (child, port) = port::start_on(options.port, async |port| {
            let child =
                Child::spawn(WHAT, command(&program, &data, port, temporary.is_some()), Signal::TERM, &log)?;
            child.ready(PATIENCE, async || answers(child.pid(), port).await.unwrap_or(false)).await?;
            Ok((child, port))
        })
        .await?;
        progress.report(Step::Ready { what: WHAT });
        Ok(Self { child, port, _temporary: temporary })
    }

    /// `redis://…` of its first database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
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
        self.child.stop().await.context("stopping Redis")
    }
}

fn command(program: &Path, data: &Path, port: u16, temporary: bool) -> Command {
    let mut command = Command::new(program);
    command.current_dir(data).args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--protected-mode",
        "yes",
    ]);
    command.args(["--daemonize", "no", "--save", "", "--appendonly", if temporary { "no" } else { "yes" }]);
    command.args(["--appendfsync", "everysec"]).arg("--dir").arg(data);
    command
}

/// Whether the server with that process id serves that port and has loaded its data.
async fn answers(pid: u32, port: u16) -> std::io::Result<bool> {
    let mut server = BufReader::new(TcpStream::connect(port::on_loopback(port)).await?);
    server.write_all(b"PING\r\nINFO server\r\n").await?;
    let mut line = String::new();
    server.read_line(&mut line).await?;
    if line.trim_end() != "+PONG" {
        return Ok(false);
    }
    line.clear();
    server.read_line(&mut line).await?;
    let length = line.trim_end().strip_prefix('$').and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut info = vec![0; length];
    server.read_exact(&mut info).await?;
    let wanted = format!("process_id:{pid}");
    Ok(String::from_utf8_lossy(&info).lines().any(|line| line.trim_end() == wanted))
}
