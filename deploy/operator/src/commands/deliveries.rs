//! `webruntime deliveries`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use clap::{Args, Subcommand};
use operations::deliveries::{self, Filter};
use uuid::Uuid;

use super::context::Context;
use crate::settings::duration;

/// Shown under `deliveries --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime deliveries retry --webhook 01990a2b-…               how many of the last day would be sent again
  webruntime deliveries retry --webhook 01990a2b-… --yes         … and send them
  webruntime deliveries retry --account 01990a2b-… --since 7d    all webhooks of an account
  webruntime deliveries retry --all --since 6h --yes             all accounts, as after a failure of the network

Failed deliveries of active webhooks start their schedule of attempts anew, earliest first, as fast as the limits of the
job-runners allow. Test pings are not among them, nor deliveries of disabled webhooks and suspended accounts, nor, without
--canceled, those that the accounts canceled. Receivers see the ids of the first attempts, so those that check ids process none
twice.";

/// Options of `deliveries`.
#[derive(Debug, Args)]
pub(crate) struct Deliveries {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send failed deliveries again; without --yes only count them
    #[command(after_help = EXAMPLES)]
    Retry(Retry),
}

#[derive(Debug, Args)]
struct Retry {
    /// Only of this webhook
    #[arg(long, value_name = "ID")]
    webhook: Option<Uuid>,
    /// Only of this account
    #[arg(long, value_name = "ID")]
    account: Option<Uuid>,
    /// Of all accounts
    #[arg(long, conflicts_with_all = ["webhook", "account"])]
    all: bool,
    /// Those that failed within this time
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    since: Duration,
    /// Also those that their accounts canceled
    #[arg(long)]
    canceled: bool,
    /// Retry them
    #[arg(long)]
    yes: bool,
}

/// Executes the command.
pub(crate) async fn run(context: &Context, args: &Deliveries) -> Result<ExitCode> {
    let Command::Retry(args) = &args.command;
    ensure!(
        args.all || args.webhook.is_some() || args.account.is_some(),
        "say which deliveries: --webhook ID, --account ID, or --all"
    );
    let operator = context.operator();
    let mut conn = store::acquire(&context.db).await?;
    // Postgres' clock stamped them.
    let until = store::read_clock(&mut conn).await?;
    let since = until - TimeDelta::from_std(args.since)?;
    let filter = Filter {
        account_id: args.account,
        webhook_id: args.webhook,
        since,
        until,
        includes_canceled: args.canceled,
    };
    let found = deliveries::count(&mut conn, &filter).await?;
    drop(conn);
    let oldest = found.oldest.map(|at| format!(", the first of {}", at.format("%Y-%m-%d %H:%M UTC")));
    println!(
        "{} deliveries of {} webhooks of {} accounts {} since {}{}.",
        found.retryable,
        found.webhooks,
        found.accounts,
        if args.canceled { "failed or were canceled" } else { "failed" },
        since.format("%Y-%m-%d %H:%M UTC"),
        oldest.unwrap_or_default()
    );
    if found.inactive > 0 {
        println!(
            "{} more are of disabled webhooks or suspended accounts; they are not retried.",
            found.inactive
        );
    }
    if found.retryable == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes {
        println!("Nothing was changed. Add --yes to retry them.");
        return Ok(ExitCode::SUCCESS);
    }
    let report = |retried| eprintln!("{retried} of {}", found.retryable);
    let retried = deliveries::retry(&context.db, &operator, &filter, report).await?;
    println!("{retried} deliveries are due now.");
    Ok(ExitCode::SUCCESS)
}
