//! The command line arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use sandbox::clickhouse_http::ClickhouseHttpArgs;

use crate::admin;
use crate::stack::services::Which;

const EXAMPLES: &str = "Examples:
  cargo run                                    everything, until Ctrl-C
  cargo run -- up --detach                     everything, in the background
  cargo run -- up --https                      the same over https as well, with a certificate of its own authority
  cargo run -- demo                            a small site with a week of visits, on the running system
  cargo run -- up --set trial.claim_window=1h  one setting changed (each service's config.toml is the manual)
  cargo run -- logs collector --follow         the log of the collector

The stores are private ones in the data directory, unless store.url, redis.url or warehouse.url is set.
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
    /// Start everything (the default command)
    Up(Up),
    /// Stop the running system
    Down(DataDir),
    /// Show the running services, their addresses and whether they are ready
    Status(DataDir),
    /// Show all logs, or that of one service or store
    Logs(Logs),
    /// Delete everything in the data directory: databases, events, secrets
    Reset(Reset),
    /// Create a small site on the running system: three pages, a form, a week of visits
    Demo(DataDir),
    /// Operator commands: look up accounts, set plans, suspend, rotate the master key
    #[command(after_help = admin::EXAMPLES)]
    Admin(Admin),
    #[command(hide = true)]
    Service(Service),
    #[command(hide = true)]
    ClickhouseHttp(ClickhouseHttpArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DataDir {
    /// The data directory: databases, logs and secrets
    #[arg(long, value_name = "DIR", default_value = ".local")]
    pub(crate) dir: PathBuf,
}

/// Options of a start.
#[derive(Debug, Clone, Args)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) data_dir: DataDir,
    /// The port of http://localhost:PORT; 0 chooses a free one
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// Serve https too, with certificates of an authority made once in the data directory
    #[arg(long)]
    pub(crate) https: bool,
    /// The port of https; 0 chooses a free one
    #[arg(long, default_value_t = 8443)]
    pub(crate) https_port: u16,
    /// Run in the background
    #[arg(long)]
    pub(crate) detach: bool,
    /// Run each service in its own process
    #[arg(long)]
    pub(crate) processes: bool,
    /// One setting, as section.key=value; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// Start no services, only what they need: for tests that start them one by one
    #[arg(long, hide = true)]
    pub(crate) only_stores: bool,
}

/// Options of `logs`.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// edge-server, control-plane, collector, job-runner, postgres, redis, clickhouse
    pub(crate) name: Option<String>,
    /// Show new lines as they are added
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) data_dir: DataDir,
}

#[derive(Debug, Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    pub(crate) data_dir: DataDir,
    /// Skip the confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Admin {
    #[command(subcommand)]
    pub(crate) command: admin::Command,
    /// The data directory of the running system
    #[arg(long, value_name = "DIR", default_value = ".local", global = true)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Service {
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) data_dir: DataDir,
    #[arg(long)]
    pub(crate) set: Vec<String>,
}
