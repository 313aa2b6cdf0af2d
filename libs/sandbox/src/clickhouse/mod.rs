//! A private ClickHouse: the real server if it is installed, else [`crate::clickhouse_http`] as a child process. Both
//! are told apart by nobody: what comes out is a URL, an account and a password.

mod server;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::child::Child;
use crate::dirs::TempDir;
use crate::port;
use crate::programs::{self, ClickHouse as Program, Source};
use crate::progress::{Progress, Step};
use crate::wait_for_exit::wait_for_exit;
use crate::{Data, secret};

const WHAT: &str = "ClickHouse";
const PATIENCE: Duration = Duration::from_secs(120);
/// The one account, with every right.
const USER: &str = "default";

/// How to start ClickHouse.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where its data lives.
    pub data: Data,
    /// Its HTTP port on loopback; 0 for a free one.
    pub port: u16,
    /// Its log; by default `log` beside the data.
    pub log: Option<PathBuf>,
    /// Where the program comes from.
    pub source: Source,
    /// The command that ends up in [`crate::clickhouse_http::main`], such as `[this program, "clickhouse-http"]`.
    pub http_command: Vec<OsString>,
    /// Statements that run at a time in a front.
    pub connections: usize,
    /// How much it gives way to other processes, from 0 to 19.
    pub niceness: u8,
}

impl Options {
    /// For tests: temporary, on a free port.
    #[must_use]
    pub fn temporary(http_command: Vec<OsString>) -> Self {
        Self {
            data: Data::Temporary,
            port: 0,
            log: None,
            source: Source::Any,
            http_command,
            connections: 4,
            niceness: 0,
        }
    }
}

/// A running ClickHouse. Dropped, it is stopped.
#[derive(Debug)]
pub struct ClickHouse {
    child: Child,
    port: u16,
    password: String,
    // After the child: it goes once nobody lives in it.
    _temporary: Option<TempDir>,
}

impl ClickHouse {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// No program can be had; the folder is in use; the server ends instead of answering (its log's end is
    /// in the message).
    pub async fn start(options: Options, progress: &Progress) -> Result<Self> {
        let (source, teller) = (options.source, progress.clone());
        let program = tokio::task::spawn_blocking(move || programs::clickhouse(source, &teller)).await??;
        let (home, temporary) = options.data.folder("clickhouse")?;
        let data = home.join("data");
        std::fs::create_dir_all(&data).with_context(|| format!("creating {}", data.display()))?;
        wait_for_exit(&data).await?;
        let password = secret::keep(&home.join("password"))?;
        let log = options.log.clone().unwrap_or_else(|| home.join("log"));

        progress.report(Step::Starting { what: WHAT });
        let (child, port) = port::start_on(options.port, async |port| {
            let command = match &program {
                Program::Server(server) => server::command(server, &home, port, &password)?,
                Program::Library(library) => front(&options, library, &home, port)?,
            };
            let mut command = giving_way(&command, options.niceness);
            command.current_dir(&data);
            let child = Child::spawn(WHAT, command, Signal::TERM, &log)?;
            let asks = async || answers(port, &password).await.unwrap_or(false);
            child.ready(PATIENCE, asks).await?;
            Ok((child, port))
        })
        .await?;
        progress.report(Step::Ready { what: WHAT });
        Ok(Self { child, port, password, _temporary: temporary })
    }

    /// `http://…` of its HTTP interface.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The account's name.
    #[must_use]
    pub fn user(&self) -> &str {
        USER
    }

    /// The account's password.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }

    /// The server's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Ends it; statements under way may end first.
    ///
    /// # Errors
    /// Its end can't be seen.
    pub async fn stop(self) -> Result<()> {
        self.child.stop().await.context("stopping ClickHouse")
    }
}

/// The command with less of a share of the processors, where others want them.
fn giving_way(command: &Command, niceness: u8) -> Command {
    let mut nice = Command::new("nice");
    nice.arg("-n").arg(niceness.to_string()).arg(command.get_program()).args(command.get_args());
    nice
}

fn front(options: &Options, library: &Path, home: &Path, port: u16) -> Result<Command> {
    let (program, words) = options.http_command.split_first().context("no command to run the front with")?;
    let mut command = Command::new(program);
    command.args(words).arg("--lib").arg(library).arg("--data").arg(home.join("data"));
    command.arg("--listen").arg(port::on_loopback(port).to_string());
    command.arg("--user").arg(USER).arg("--password-file").arg(home.join("password"));
    command.arg("--connections").arg(options.connections.to_string());
    Ok(command)
}

/// Whether a statement is answered with this folder's password: another server on the port has another.
async fn answers(port: u16, password: &str) -> std::io::Result<bool> {
    let mut server = TcpStream::connect(port::on_loopback(port)).await?;
    let ask = format!(
        "GET /?query=SELECT+1 HTTP/1.1\r\nHost: localhost\r\nX-ClickHouse-User: {USER}\r\n\
         X-ClickHouse-Key: {password}\r\nConnection: close\r\n\r\n"
    );
    server.write_all(ask.as_bytes()).await?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200"))
}
