//! `webruntime restore`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, Utc};
use clap::{Args, ValueEnum};
use operations::backups::{self, Part, RestoreRequest, Restored, Steps, Target};

use super::backup::{Reporter, installation, part, skipped};
use super::context::Context;
use crate::settings::duration;

/// Shown under `restore --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime restore                                  into empty stores: Postgres to the end of its archived log
  webruntime restore --replace                        over what is there
  webruntime restore --at 2026-11-27T14:05:00Z --replace    Postgres as it was then
  webruntime restore --at backup --backup 20261127T020000Z  as it was at the end of that backup

Stop all services and Postgres first; ClickHouse, Redis and the object store run. Run it where `backup` runs, with the same master
key and pepper. Postgres is restored first: its files, then it is started (backup.start_postgres, or by you) and replays its log.
Then ClickHouse and the blobs as of the last backup. Then what was deleted since is deleted again: accounts and sites in
deletions.tsv of the backup folder, and the events of every site that Postgres does not have. At last the queue in Redis is emptied.

Before a restore to a point in time run --step deletions while Postgres still runs: deletions after the last backup are known to
it alone. Where Postgres is started by other means, as in containers, there are two runs: --step files, start Postgres, --step stores.
It may be run again after a failure, with --replace. Afterwards: webruntime check, then start the services.";

/// Options of `restore`.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup for ClickHouse, blobs and, unless --at is a time, Postgres; by default the last one
    #[arg(long, value_name = "ID")]
    backup: Option<String>,
    /// The state of Postgres: latest, backup (the end of that backup), or a time such as 2026-11-27T14:05:00Z
    #[arg(long, value_name = "TIME", default_value = "latest", value_parser = target)]
    at: Target,
    /// Overwrite stores that are not empty
    #[arg(long)]
    replace: bool,
    /// Leave out a part: postgres (it was restored by other means), clickhouse or blobs; repeatable
    #[arg(long, value_name = "PART", value_parser = part)]
    skip: Vec<Part>,
    /// Do a part of the work
    #[arg(long, value_enum)]
    step: Option<Step>,
    /// A further list of deletions, in the format of deletions.tsv
    #[arg(long, value_name = "FILE")]
    deletions: Option<PathBuf>,
    /// How long Postgres may take to start and to replay its log
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    wait: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Step {
    /// Note the deletions that the running Postgres knows, before it is stopped for a restore to a point in time
    Deletions,
    /// The files of Postgres, which must not run
    Files,
    /// Everything after Postgres was started
    Stores,
}

fn target(text: &str) -> Result<Target, String> {
    match text {
        "latest" => Ok(Target::Latest),
        "backup" => Ok(Target::Backup),
        time => time.parse::<DateTime<Utc>>().map(Target::Time).map_err(|error| {
            format!("latest, backup, or a time with its zone such as 2026-11-27T14:05:00Z: {error}")
        }),
    }
}

/// Executes the command.
pub(crate) async fn run(context: &Context, args: &Restore) -> Result<ExitCode> {
    let report = Reporter::default();
    let report = |line: &str| report.print(line);
    let request = RestoreRequest {
        backup: args.backup.clone(),
        target: args.at,
        replace: args.replace,
        steps: match args.step {
            None => Steps::All,
            Some(Step::Deletions) => Steps::Deletions,
            Some(Step::Files) => Steps::PostgresFiles,
            Some(Step::Stores) => Steps::AfterStart,
        },
        skip: skipped(&args.skip),
        deletions: args.deletions.clone(),
        wait: args.wait,
    };
    match backups::restore(&installation(context, &report)?, &context.operator(), &request).await? {
        None if request.steps == Steps::Deletions => {}
        None => println!(
            "The files of Postgres are restored. Start Postgres, then: webruntime restore --step stores"
        ),
        Some(restored) => print(&restored),
    }
    Ok(ExitCode::SUCCESS)
}

fn print(restored: &Restored) {
    println!("Restored {}.", restored.backup);
    for (table, (now, then)) in &restored.rows {
        println!("  {table:<16} {now:>10} rows, {then:>10} at the backup");
    }
    for (table, rows) in &restored.clickhouse_rows {
        println!("  {table:<16} {rows:>10} rows in ClickHouse");
    }
    let purged = restored.purged;
    println!(
        "  deleted again: {} accounts, {} sites, the events of {} sites that Postgres does not have",
        purged.accounts, purged.sites, purged.unknown_sites
    );
    if let Some(blobs) = &restored.blobs {
        println!("  {} blobs, {} of them copied, {} missing", blobs.known, blobs.copied, blobs.missing);
    }
    println!("  {} keys deleted in Redis", restored.redis_keys);
    let seconds: Vec<String> =
        restored.seconds.iter().map(|(step, seconds)| format!("{step} {seconds:.1}")).collect();
    println!("  seconds: {}", seconds.join(", "));
    println!("Next: webruntime check, then start the services.");
}
