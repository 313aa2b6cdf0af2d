//! `webruntime migrate`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use operations::migrations::{self, Progress};

use super::context::Context;
use crate::settings::duration;

/// Shown under `migrate --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime migrate --plan        list what is pending, and what takes long on large tables; changes nothing
  webruntime migrate               apply it
  webruntime migrate --wait 60s    … as a job that starts together with the databases

Run it before the services of a new release start: services never migrate. They refuse a schema older than theirs, and accept
that of one release more, so the old ones run on while this works. Several runs at once are safe: one works, the others wait.
A run that was stopped is continued by the next one. There is no way back: make a backup first. On the schema of the next
release, as after a rollback of the programs, it changes nothing and succeeds.";

/// Options of `migrate`.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Only list the pending migrations
    #[arg(long)]
    plan: bool,
    /// The plan as JSON
    #[arg(long, requires = "plan")]
    json: bool,
    /// How long to wait until both databases accept connections, such as 60s
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,
}

/// Executes the command.
pub(crate) async fn run(context: &Context, args: &Migrate) -> Result<ExitCode> {
    context.wait(args.wait).await?;
    if args.plan {
        let plan = migrations::plan(&context.db, &context.warehouse).await?;
        if args.json {
            println!("{}", serde_json::to_string_pretty(&plan)?);
        } else {
            println!("{plan}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let report = |progress| match progress {
        Progress::WaitingForLock => eprintln!("waiting: another process is migrating"),
        Progress::Applying { store, name, remaining } => {
            eprintln!("{store}: applying {name}, {remaining} to go");
        }
    };
    let applied = migrations::apply(&context.db, &context.warehouse, &context.operator(), report).await?;
    if !applied.newer.is_empty() {
        println!(
            "No migration was pending. The next release has migrated these databases already ({}); this release works with \
             that schema.",
            applied.newer.join(", ")
        );
    } else if applied.postgres + applied.clickhouse == 0 {
        println!("No migration was pending.");
    } else {
        println!(
            "Applied {} migrations of Postgres and {} of ClickHouse in {:.1} s.",
            applied.postgres,
            applied.clickhouse,
            applied.elapsed.as_secs_f64()
        );
    }
    Ok(ExitCode::SUCCESS)
}
