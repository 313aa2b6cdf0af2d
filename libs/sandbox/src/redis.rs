//! A private Redis server.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::child::Child;
use crate::data::{Data, prepare};
use crate::dirs::TempDir;
use crate::port;
use crate::programs::{self, Source};
use crate::progress::{Progress, Step};

const NAME: &str = "Redis";
/// Loading a large append-only file takes long.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Options of a start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The location of its data. Persistent data is appended to a file and fsynced every second.
    pub data: Data,
    /// Its port on loopback; 0 chooses a free one.
    pub port: u16,
    /// The log file; by default `log` beside the data.
    pub log: Option<PathBuf>,
    /// The source of the program.
    pub source: Source,
}

impl Options {
    /// Options for tests: nothing is saved, on a free port.
    #[must_use]
    pub fn temporary() -> Self {
        Self { data: Data::Temporary, port: 0, log: None, source: Source::Any }
    }
}

/// A running Redis. Dropping it stops it.
#[derive(Debug)]
pub struct Redis {
    child: Child,
    port: u16,
    // Declared after the child, so that it is deleted once the child has exited.
    _temporary: Option<TempDir>,
}

impl Redis {
    /// Starts the server and waits until it is ready. Fails if the program can't be found or fetched, if another process
    /// uses the directory, or if the server exits; the error then contains the end of its log.
    pub async fn start(options: Options, progress: &Progress) -> Result<Self> {
        let (source, reporter) = (options.source, progress.clone());
        let program = tokio::task::spawn_blocking(move || programs::redis(source, &reporter)).await??;
        let (dir, temporary) = options.data.open("redis")?;
        let data = prepare(&dir).await?;
        let log = options.log.clone().unwrap_or_else(|| dir.join("log"));

        progress.report(Step::Starting { name: NAME });
        let (child, port) = port::start_on(options.port, async |port| {
            let child =
                Child::spawn(NAME, command(&program, &data, port, temporary.is_some()), Signal::TERM, &log)?;
            let is_ready = async || is_ready(child.pid(), port).await.unwrap_or(false);
            child.wait_until_ready(START_TIMEOUT, is_ready).await?;
            Ok((child, port))
        })
        .await?;
        progress.report(Step::Ready { name: NAME });
        Ok(Self { child, port, _temporary: temporary })
    }

    /// Returns the URL of its first database, `redis://…`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Waits until the server exits by itself.
    pub async fn exited(&self) -> Option<ExitStatus> {
        self.child.exited().await
    }

    /// Stops it. Persistent data is written out first.
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

/// Returns whether the server with that process id serves that port and has loaded its data.
async fn is_ready(pid: u32, port: u16) -> std::io::Result<bool> {
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
    let expected = format!("process_id:{pid}");
    Ok(String::from_utf8_lossy(&info).lines().any(|line| line.trim_end() == expected))
}
