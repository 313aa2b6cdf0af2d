//! `webruntime backup`.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use blobs::Blobs;
use clap::{Args, Subcommand};
use operations::backups::{self, BackupFolder, BackupRequest, Installation, Part, Secrets};
use operations::checks::Status;
use service::config::ExposeSecret as _;
use tokio::time::Instant;

use super::context::Context;

/// Shown under `backup --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime backup                       what changed since the last backup; a full one once a week (backup.full_interval)
  webruntime backup --full                everything
  webruntime backup --skip postgres       ClickHouse and blobs: a managed Postgres has backups of its own
  webruntime backup list                  all backups, oldest first
  webruntime backup check                 verify them: reads every file

Postgres comes first, by pgBackRest, then ClickHouse, by its BACKUP, then the blobs that no earlier backup has. Services go on
meanwhile. Set up [backup] in the settings first: deploy/docs/backups.md. Old backups expire by backup.retained_fulls.

Not in a backup: master keys and peppers, without which it is worthless (keep them elsewhere; a backup folder that holds one is
refused), the salts of visitor ids, and Redis.";

/// Options of `backup`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Backup {
    #[command(subcommand)]
    command: Option<Command>,
    /// Make a full backup, not one of the changes
    #[arg(long)]
    full: bool,
    /// Leave out a part: postgres, clickhouse or blobs; repeatable
    #[arg(long, value_name = "PART", value_parser = part)]
    skip: Vec<Part>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the backups, oldest first
    #[command(after_help = EXAMPLES)]
    List,
    /// Verify all backups: checksums, pgBackRest's own verification, and that no secret is among them
    #[command(after_help = EXAMPLES)]
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn part(text: &str) -> Result<Part, String> {
    Part::parse(text).ok_or_else(|| "there are the parts postgres, clickhouse and blobs".to_owned())
}

/// Executes the command.
pub(crate) async fn run(context: &Context, args: &Backup) -> Result<ExitCode> {
    match &args.command {
        Some(Command::List) => list(context),
        Some(Command::Check { json }) => check(context, *json).await,
        None => create(context, args).await,
    }
}

async fn create(context: &Context, args: &Backup) -> Result<ExitCode> {
    let began = Instant::now();
    let report = Reporter::default();
    let report = |line: &str| report.print(line);
    let installation = installation(context, &report)?;
    let request = BackupRequest { full: args.full, skip: skipped(&args.skip) };
    let manifest = backups::create(&installation, &context.operator(), &request).await?;
    println!("{}", manifest.line());
    if let Some(blobs) = manifest.blobs.as_ref().filter(|blobs| blobs.gone > 0) {
        println!("{} blobs were deleted while the backup was made.", blobs.gone);
    }
    println!(
        "Made in {:.1} s. Without the master key and the pepper it is worthless: keep both elsewhere.",
        began.elapsed().as_secs_f64()
    );
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context) -> Result<ExitCode> {
    context.settings.backup.check()?;
    let manifests = BackupFolder::open(&context.settings.backup.folder)?.manifests()?;
    for manifest in &manifests {
        println!("{}", manifest.line());
    }
    println!("{} backups in {}", manifests.len(), context.settings.backup.folder.display());
    Ok(ExitCode::SUCCESS)
}

async fn check(context: &Context, json: bool) -> Result<ExitCode> {
    let report = Reporter::default();
    let report = |line: &str| report.print(line);
    let findings = backups::check(&installation(context, &report)?).await?;
    if json {
        println!("{}", serde_json::to_string_pretty(&findings)?);
    } else {
        findings.iter().for_each(|finding| println!("{finding}"));
    }
    let failed = findings.iter().any(|finding| finding.status == Status::Failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

pub(super) fn skipped(parts: &[Part]) -> BTreeSet<Part> {
    parts.iter().copied().collect()
}

pub(super) fn installation<'a>(
    context: &'a Context,
    report: &'a (dyn Fn(&str) + Sync),
) -> Result<Installation<'a>> {
    let settings = &context.settings;
    Ok(Installation {
        config: &settings.backup,
        db: &context.db,
        warehouse: &context.warehouse,
        redis: &settings.redis,
        blobs: Blobs::connect(&settings.blobs).context("opening the blob store")?,
        secrets: Secrets {
            master_key: settings.secrets.master_key.expose_secret().to_owned(),
            key_pepper: settings.secrets.key_pepper.expose_secret().to_owned(),
            files: settings.secret_files.clone(),
        },
        clock: &context.clock,
        rng: &context.rng,
        report,
    })
}

/// Prints progress to standard error: every step, and of the lines that count something, which are indented, one in two seconds.
pub(super) struct Reporter {
    began: Instant,
    next_count_ms: AtomicU64,
}

impl Default for Reporter {
    fn default() -> Self {
        Self { began: Instant::now(), next_count_ms: AtomicU64::new(COUNT_INTERVAL_MS) }
    }
}

const COUNT_INTERVAL_MS: u64 = 2_000;

impl Reporter {
    pub(super) fn print(&self, line: &str) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if line.starts_with("  ") && !line.contains("missing") {
            if elapsed < self.next_count_ms.load(Ordering::Relaxed) {
                return;
            }
            self.next_count_ms.store(elapsed + COUNT_INTERVAL_MS, Ordering::Relaxed);
        }
        eprintln!("{line}");
    }
}
