//! ClickHouse's HTTP interface over libchdb, for machines without a ClickHouse server. It runs in a process of its own: the
//! engine is half a gigabyte of foreign code, and a process can be killed.
//!
//! It serves the requests of the `clickhouse` crate (the README lists the exceptions) with ClickHouse's own error codes,
//! statuses, headers and formats. Its clients see only a ClickHouse URL.

mod arguments;
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

use anyhow::{Context as _, Result, anyhow};
pub use arguments::ClickhouseHttpArgs;
use clap::{Args as _, FromArgMatches as _};

/// Serves until SIGTERM or SIGINT. `args` are the words after the subcommand, see [`ClickhouseHttpArgs`]. Any program's
/// `main` may call it, inside an async runtime or not.
pub fn main(args: impl IntoIterator<Item = OsString>) -> Result<()> {
    let command =
        ClickhouseHttpArgs::augment_args(clap::Command::new("clickhouse-http").no_binary_name(true));
    run(ClickhouseHttpArgs::from_arg_matches(&command.try_get_matches_from(args)?)?)
}

/// Serves until SIGTERM or SIGINT.
pub fn run(args: ClickhouseHttpArgs) -> Result<()> {
    // A thread of its own, because a runtime can't start inside another. The engine parses nested statements by recursion,
    // so its threads need the stack of a main thread.
    let thread = std::thread::Builder::new().name("clickhouse-http".to_owned()).spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(8 << 20).build()?;
        runtime.block_on(serve::serve(args))
    });
    thread
        .context("starting the thread of the HTTP interface")?
        .join()
        .map_err(|_| anyhow!("the thread of the HTTP interface panicked"))?
}
