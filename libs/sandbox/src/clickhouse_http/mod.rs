//! ClickHouse's HTTP interface over libchdb, for machines without a ClickHouse server. A process of its own:
//! the engine is half a gigabyte of foreign code, and a process can be killed.
//!
//! It serves what the `clickhouse` crate asks (see the README for what it doesn't) in ClickHouse's own words:
//! codes, statuses, headers, formats. Everything else only ever sees a ClickHouse URL.

mod body;
mod chdb;
mod engine;
mod exception;
mod formats;
mod frames;
mod job;
mod lexer;
mod request;
mod response;
mod serve;
mod statement;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, FromArgMatches as _};

/// What a front is told on its command line.
#[derive(Debug, Clone, Args)]
pub struct ClickhouseHttpArgs {
    /// The libchdb.so to load
    #[arg(long)]
    pub lib: PathBuf,
    /// Where the data lives; created if missing
    #[arg(long)]
    pub data: PathBuf,
    /// Address to serve on, such as 127.0.0.1:8123
    #[arg(long)]
    pub listen: SocketAddr,
    /// The one account's name
    #[arg(long, default_value = "default")]
    pub user: String,
    /// File with its password; without one, anybody on this machine may ask
    #[arg(long)]
    pub password_file: Option<PathBuf>,
    /// Statements that run at a time; more wait their turn
    #[arg(long, default_value_t = 4)]
    pub connections: usize,
}

/// Serves until SIGTERM or SIGINT. `args` are the words after the subcommand, see [`ClickhouseHttpArgs`]; may be
/// called from any program's `main`, inside an async runtime or not.
///
/// # Errors
/// The arguments can't be read, the library or the data can't be opened, the address is taken.
pub fn main(args: impl IntoIterator<Item = OsString>) -> Result<()> {
    let command =
        ClickhouseHttpArgs::augment_args(clap::Command::new("clickhouse-http").no_binary_name(true));
    run(ClickhouseHttpArgs::from_arg_matches(&command.try_get_matches_from(args)?)?)
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// The library or the data can't be opened, the address is taken.
pub fn run(args: ClickhouseHttpArgs) -> Result<()> {
    // A thread of its own: a runtime can't be begun inside another. The engine parses deep statements by
    // recursion, so its threads get a main thread's stack.
    let thread = std::thread::Builder::new().name("front".to_owned()).spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(8 << 20).build()?;
        runtime.block_on(serve::serve(args))
    });
    thread
        .context("starting the front's thread")?
        .join()
        .map_err(|_| anyhow!("the front's thread panicked"))?
}
