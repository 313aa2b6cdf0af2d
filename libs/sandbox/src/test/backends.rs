//! The supervisors of this test process, and what they announced.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result};

use super::program;
use crate::supervisor::{Announcement, Backend};

struct SupervisedBackend {
    announcement: Announcement,
    /// Its standard input closes when this process ends, however it ends.
    _supervisor: Child,
}

static POSTGRES: OnceLock<Result<SupervisedBackend, String>> = OnceLock::new();
static REDIS: OnceLock<Result<SupervisedBackend, String>> = OnceLock::new();
static CLICKHOUSE: OnceLock<Result<SupervisedBackend, String>> = OnceLock::new();

/// Where the backend answers. The first to ask starts it; the others wait for that.
pub(super) async fn announced(backend: Backend) -> Announcement {
    let asked = tokio::task::spawn_blocking(move || {
        let (cell, name) = match backend {
            Backend::Postgres => (&POSTGRES, "postgres"),
            Backend::Redis => (&REDIS, "redis"),
            Backend::Clickhouse => (&CLICKHOUSE, "clickhouse"),
        };
        let kept = cell.get_or_init(|| keep(name).map_err(|error| format!("{error:#}")));
        kept.as_ref().map(|kept| kept.announcement.clone()).map_err(Clone::clone)
    });
    must(asked.await.map_err(anyhow::Error::from).and_then(|answer| answer.map_err(anyhow::Error::msg)))
}

fn keep(name: &str) -> Result<SupervisedBackend> {
    let mut command = Command::new(program::sandbox()?);
    // A group of its own: Ctrl-C ends the tests, and their end ends the supervisor.
    command.args(["run", name]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    let mut supervisor = command.spawn().context("starting the sandbox")?;
    let mut line = String::new();
    BufReader::new(supervisor.stdout.take().context("no output")?).read_line(&mut line)?;
    let announcement = serde_json::from_str(&line)
        .with_context(|| format!("the sandbox gave no {name}; what it said stands above"))?;
    Ok(SupervisedBackend { announcement, _supervisor: supervisor })
}

/// A test without its backend has failed.
#[expect(clippy::panic, reason = "for tests alone")]
#[track_caller]
pub(super) fn must<T>(outcome: Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("sandbox: {error:#}"))
}
