//! `webruntime outbox`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use operations::outbox;

use super::context::Context;

/// Shown under `outbox --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime outbox           what waits, since when, and what this release can't read
  webruntime outbox retry     make postponed rows due now

The outbox holds jobs and signals that follow from committed changes; job-runners relay due rows within a second. Rows that are
due for minutes mean that no job-runner works, or that Redis is unavailable. Postponed rows are those that the job-runner of an
older release could not read: update the job-runners, then retry. They would be tried again within the hour by themselves.";

/// Options of `outbox`.
#[derive(Debug, Args)]
pub(crate) struct Outbox {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make all postponed rows due now
    #[command(after_help = EXAMPLES)]
    Retry,
}

/// Executes the command.
pub(crate) async fn run(context: &Context, args: &Outbox) -> Result<ExitCode> {
    let operator = context.operator();
    let mut tx = store::begin(&context.db).await?;
    let text = match args.command {
        None => outbox::status(&mut tx, operator.now).await?.to_string(),
        Some(Command::Retry) => {
            let rows = outbox::retry(&mut tx, &operator).await?;
            format!("{rows} postponed rows are due now. `webruntime outbox` shows what becomes of them.")
        }
    };
    store::commit(tx).await?;
    println!("{text}");
    Ok(ExitCode::SUCCESS)
}
