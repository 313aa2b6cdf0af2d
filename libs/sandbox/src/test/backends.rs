//! The supervised backends of this test process.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result};

use super::program;
use crate::supervisor::{Announcement, Backend};

struct SupervisedBackend {
    announcement: Announcement,
    /// Its standard input closes when this process ends in any way.
    _supervisor: Child,
}

static POSTGRES: OnceLock<Result<SupervisedBackend, String>> = OnceLock::new();
static REDIS: OnceLock<Result<SupervisedBackend, String>> = OnceLock::new();
static CLICKHOUSE: OnceLock<Result<SupervisedBackend, String>> = OnceLock::new();

/// Returns the announcement of a backend. The first call starts the backend, and concurrent calls wait for it.
pub(super) async fn announcement(backend: Backend) -> Announcement {
    let started = tokio::task::spawn_blocking(move || {
        let (cell, name) = match backend {
            Backend::Postgres => (&POSTGRES, "postgres"),
            Backend::Redis => (&REDIS, "redis"),
            Backend::Clickhouse => (&CLICKHOUSE, "clickhouse"),
        };
        let backend = cell.get_or_init(|| start(name).map_err(|error| format!("{error:#}")));
        backend.as_ref().map(|backend| backend.announcement.clone()).map_err(Clone::clone)
    });
    must(started.await.map_err(anyhow::Error::from).and_then(|result| result.map_err(anyhow::Error::msg)))
}

fn start(name: &str) -> Result<SupervisedBackend> {
    let mut command = Command::new(program::sandbox()?);
    // A process group of its own: Ctrl-C ends the tests, and their end stops the supervisor.
    command.args(["run", name]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    let mut supervisor = command.spawn().context("starting the sandbox")?;
    let mut line = String::new();
    BufReader::new(supervisor.stdout.take().context("no output")?).read_line(&mut line)?;
    let announcement = serde_json::from_str(&line)
        .with_context(|| format!("the sandbox started no {name}; see its output above"))?;
    Ok(SupervisedBackend { announcement, _supervisor: supervisor })
}

/// Returns the value or fails the test.
#[expect(clippy::panic, reason = "for tests alone")]
#[track_caller]
pub(super) fn must<T>(outcome: Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("sandbox: {error:#}"))
}
