//! The command line: what can be said.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use sandbox::clickhouse_http::ClickhouseHttpArgs;

use crate::admin;
use crate::services::Which;

const EXAMPLES: &str = "Examples:
  cargo run                                    everything, until Ctrl-C
  cargo run -- up --detach                     everything, in the background
  cargo run -- demo                            a small site with a week of visits, on the running system
  cargo run -- up --set trial.claim_window=1h  one setting changed (each service's config.toml is the manual)
  cargo run -- logs collector --follow         what the collector is doing

Stores are private ones in the folder, unless store.url, redis.url or warehouse.url say where others are.
Settings also come from the environment: WEBRUNTIME_STORE__URL is store.url.";

/// The whole system on one machine: Postgres, Redis, ClickHouse and the four services
#[derive(Debug, Parser)]
#[command(name = "local", after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) up: Up,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start everything (this is what happens without a command)
    Up(Up),
    /// Stop what `up` started
    Down(Place),
    /// Show what runs, where, and whether it is ready
    Status(Place),
    /// Show the logs: of everything, or of one service or store
    Logs(Logs),
    /// Delete everything in the folder: databases, events, secrets
    Reset(Reset),
    /// Make a small real site on the running system: three pages, a form, a week of visits
    Demo(Place),
    /// What an operator does: look accounts up, set plans, suspend
    #[command(after_help = admin::EXAMPLES)]
    Admin(Admin),
    #[command(hide = true)]
    Service(Service),
    #[command(hide = true)]
    ClickhouseHttp(ClickhouseHttpArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    /// The folder that holds databases, logs and secrets
    #[arg(long, value_name = "DIR", default_value = ".local")]
    pub(crate) dir: PathBuf,
}

/// How to start.
#[derive(Debug, Clone, Args)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The port of http://localhost:PORT; 0 for any free one
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// Go on in the background
    #[arg(long)]
    pub(crate) detach: bool,
    /// Give each service a process of its own
    #[arg(long)]
    pub(crate) processes: bool,
    /// One setting, as section.key=value; may be given many times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

/// Which logs to show.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// edge-server, control-plane, collector, job-runner, postgres, redis, clickhouse
    pub(crate) name: Option<String>,
    /// Go on showing what is added
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Don't ask
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Admin {
    #[command(subcommand)]
    pub(crate) command: admin::Command,
    /// The folder in which the system runs
    #[arg(long, value_name = "DIR", default_value = ".local", global = true)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Service {
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) place: Place,
    #[arg(long)]
    pub(crate) set: Vec<String>,
}
