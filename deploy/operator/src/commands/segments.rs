//! `webruntime segments`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Subcommand};
use collector::stored_segments::{self, Config, StoredSegment};
use operations::audit::LongChange;
use serde_json::json;
use service::config::{Defaults, Loaded, load};
use service::telemetry;
use toml::Table;

use super::context::Context;
use crate::settings::duration;

/// Shown under `segments --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  webruntime segments list                                what a collector has not sent to ClickHouse yet
  webruntime segments list --folder /mnt/old/segments     … of another folder
  webruntime segments ship --folder /mnt/old/segments     send all of it, then exit

A collector's segments are the only copy of their events. Before its volume is deleted, as when there are to be fewer collectors,
stop the collector and ship what is left; a running one sends its segments itself. Shipping counts no event twice, may be
stopped, and may be repeated. Give it the collector's settings: the rules of visits are among them.";

/// Options of `segments`.
#[derive(Debug, Args)]
pub(crate) struct Segments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the segments of a folder, oldest first
    #[command(after_help = EXAMPLES)]
    List {
        /// The folder; by default segments.folder
        #[arg(long)]
        folder: Option<PathBuf>,
    },
    /// Send all segments of a folder to ClickHouse, and exit
    #[command(after_help = EXAMPLES)]
    Ship {
        /// The folder; by default segments.folder
        #[arg(long)]
        folder: Option<PathBuf>,
        /// How long to try
        #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
        timeout: Duration,
    },
}

/// Executes the command.
pub(crate) async fn run(context: &Context, args: &Segments) -> Result<ExitCode> {
    let Loaded { mut config, base, .. } = load::<Config>(collector_defaults(), &context.sources)?;
    let (Command::List { folder } | Command::Ship { folder, .. }) = &args.command;
    if let Some(folder) = folder {
        config.segments.folder.clone_from(folder);
    }
    let folder = &config.segments.folder;
    let before = list(folder)?;
    if before.is_empty() {
        println!("{}: 0 segments", folder.display());
        return Ok(ExitCode::SUCCESS);
    }
    let Command::Ship { timeout, .. } = &args.command else {
        print(context, &before);
        return Ok(ExitCode::SUCCESS);
    };
    // The collector's code logs why a segment can't be sent.
    let log = telemetry::Config {
        log: "warn".to_owned(),
        otlp_endpoint: String::new(),
        settings_warnings: Vec::new(),
        ..base.telemetry
    };
    let _log = telemetry::init(&log, "webruntime")?;
    context.warehouse.ping().await.context("connecting to ClickHouse")?;
    store::try_connect(&context.db).await.context("connecting to Postgres")?;
    let operator = context.operator();
    let detail = json!({ "segments": before.len(), "bytes": bytes(&before) });
    let change = LongChange::begin(&context.db, &operator, "segments ship", folder.to_str(), detail).await?;
    let shipped = stored_segments::ship(&config, *timeout).await;
    let left = change.end(&context.db, shipped, |left| json!({ "left": left.len() })).await?;
    println!("{} of {} segments are in ClickHouse.", before.len().saturating_sub(left.len()), before.len());
    if left.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    print(context, &left);
    eprintln!(
        "These are left. ClickHouse refused those in the state `refused`: the log above says why, and their lines are text \
         (a checksum and JSON). For the others, run the command again."
    );
    Ok(ExitCode::FAILURE)
}

/// Returns the segments of a folder. A missing folder is an error: it is most often a volume that is not mounted here.
fn list(folder: &Path) -> Result<Vec<StoredSegment>> {
    ensure!(
        folder.is_dir(),
        "there is no folder {}, which is `segments.folder` unless --folder names another one: mount the collector's volume \
         there, or name the folder where it is",
        folder.display()
    );
    stored_segments::list(folder).with_context(|| format!("reading {}", folder.display()))
}

/// Returns the collector's defaults without its secrets, which shipping needs not: this program has more of them.
fn collector_defaults() -> Defaults {
    static WITHOUT_SECRETS: LazyLock<String> = LazyLock::new(|| {
        let mut table: Table = toml::from_str(collector::DEFAULTS.toml).unwrap_or_default();
        table.remove("secrets");
        table.to_string()
    });
    Defaults { toml: &WITHOUT_SECRETS, ..collector::DEFAULTS }
}

fn print(context: &Context, segments: &[StoredSegment]) {
    println!("{:<36}  {:<8} {:>12}  {:>10}", "segment", "state", "bytes", "minutes");
    for segment in segments {
        let minutes = (context.clock.now() - segment.since).num_minutes();
        let (id, state) = (segment.id, segment.state.as_str());
        println!("{id}  {state:<8} {:>12}  {minutes:>10}", segment.bytes);
    }
    println!("{} segments, {} bytes", segments.len(), bytes(segments));
}

fn bytes(segments: &[StoredSegment]) -> u64 {
    segments.iter().map(|segment| segment.bytes).sum()
}
