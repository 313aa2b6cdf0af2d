//! A private ClickHouse: an installed server, or else [`crate::clickhouse_http`] over libchdb as a child process. Both have
//! the same interface: a URL, a user and a password.

pub(crate) mod server;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::child::Child;
use crate::data::{Data, prepare};
use crate::dirs::TempDir;
use crate::port;
use crate::programs::{self, ClickHouse as Program, Source};
use crate::progress::{Progress, Step};
use crate::secret;
use server::USER;

const NAME: &str = "ClickHouse";
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Options of a start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The location of its data.
    pub data: Data,
    /// Its HTTP port on loopback; 0 chooses a free one.
    pub port: u16,
    /// The log file; by default `log` beside the data.
    pub log: Option<PathBuf>,
    /// The source of the program.
    pub source: Source,
    /// The command that ends up in [`crate::clickhouse_http::main`], such as `[this program, "clickhouse-http"]`.
    pub http_command: Vec<OsString>,
    /// Maximum concurrent statements, if libchdb is used.
    pub max_concurrent: usize,
    /// Its nice value, from 0 to 19.
    pub niceness: u8,
    /// The folder of its backups, `File('name')` in statements. Without one, backups are refused.
    pub backups: Option<PathBuf>,
}

impl Options {
    /// Options for tests: temporary, on a free port.
    #[must_use]
    pub fn temporary(http_command: Vec<OsString>) -> Self {
        Self {
            data: Data::Temporary,
            port: 0,
            log: None,
            source: Source::Any,
            http_command,
            max_concurrent: 4,
            niceness: 0,
            backups: None,
        }
    }
}

/// A running ClickHouse. Dropping it stops it.
#[derive(Debug)]
pub struct ClickHouse {
    child: Child,
    port: u16,
    password: String,
    // Declared after the child, so that it is deleted once the child has exited.
    _temporary: Option<TempDir>,
}

impl ClickHouse {
    /// Starts the server and waits until it is ready. Fails if the program can't be found or fetched, if another process
    /// uses the directory, or if the server exits; the error then contains the end of its log.
    pub async fn start(options: Options, progress: &Progress) -> Result<Self> {
        let (source, reporter) = (options.source, progress.clone());
        let program = tokio::task::spawn_blocking(move || programs::clickhouse(source, &reporter)).await??;
        let (dir, temporary) = options.data.open("clickhouse")?;
        let data = prepare(&dir).await?;
        let password = secret::read_or_create(&dir.join("password"))?;
        let log = options.log.clone().unwrap_or_else(|| dir.join("log"));

        progress.report(Step::Starting { name: NAME });
        let (child, port) = port::start_on(options.port, async |port| {
            let command = match &program {
                Program::Server(server) => {
                    server::command(server, &dir, port, &password, options.backups.as_deref())?
                }
                Program::Library(library) => libchdb_command(&options, library, &dir, port)?,
            };
            let mut command = with_niceness(&command, options.niceness);
            command.current_dir(&data);
            let child = Child::spawn(NAME, command, Signal::TERM, &log)?;
            let is_ready = async || is_ready(port, &password).await.unwrap_or(false);
            child.wait_until_ready(START_TIMEOUT, is_ready).await?;
            Ok((child, port))
        })
        .await?;
        progress.report(Step::Ready { name: NAME });
        Ok(Self { child, port, password, _temporary: temporary })
    }

    /// Returns the URL of its HTTP interface.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the user's name.
    #[must_use]
    pub fn user(&self) -> &str {
        USER
    }

    /// Returns the user's password.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
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

    /// Waits until the server exits by itself.
    pub async fn exited(&self) -> Option<ExitStatus> {
        self.child.exited().await
    }

    /// Stops it. Running statements may end first.
    pub async fn stop(self) -> Result<()> {
        self.child.stop().await.context("stopping ClickHouse")
    }
}

/// Returns the command with a lower CPU priority.
fn with_niceness(command: &Command, niceness: u8) -> Command {
    let mut nice = Command::new("nice");
    nice.arg("-n").arg(niceness.to_string()).arg(command.get_program()).args(command.get_args());
    nice
}

fn libchdb_command(options: &Options, library: &Path, dir: &Path, port: u16) -> Result<Command> {
    let (program, arguments) =
        options.http_command.split_first().context("no command for the HTTP interface over libchdb")?;
    let mut command = Command::new(program);
    command.args(arguments).arg("--lib").arg(library).arg("--data").arg(dir.join("data"));
    command.arg("--listen").arg(port::on_loopback(port).to_string());
    command.arg("--user").arg(USER).arg("--password-file").arg(dir.join("password"));
    command.arg("--max-concurrent").arg(options.max_concurrent.to_string());
    if let Some(backups) = &options.backups {
        command.arg("--backups").arg(backups);
    }
    Ok(command)
}

/// Returns whether the server accepts this directory's password: another server on the port has another one.
async fn is_ready(port: u16, password: &str) -> std::io::Result<bool> {
    let mut server = TcpStream::connect(port::on_loopback(port)).await?;
    let request = format!(
        "GET /?query=SELECT+1 HTTP/1.1\r\nHost: localhost\r\nX-ClickHouse-User: {USER}\r\n\
         X-ClickHouse-Key: {password}\r\nConnection: close\r\n\r\n"
    );
    server.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    server.read_to_end(&mut response).await?;
    Ok(response.starts_with(b"HTTP/1.1 200"))
}
