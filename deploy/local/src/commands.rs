//! The command line: what can be said, and who does it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use sandbox::front::{self, FrontArgs};

use crate::folder::Folder;
use crate::services::Which;
use crate::{admin, demo, logs, services, stack, state};

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
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    up: Up,
}

#[derive(Debug, Subcommand)]
enum Command {
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
    /// What an operator does
    Admin(Admin),
    #[command(hide = true)]
    Service(Service),
    #[command(hide = true)]
    ClickhouseFront(FrontArgs),
}

#[derive(Debug, Clone, Args)]
struct Place {
    /// The folder that holds databases, logs and secrets
    #[arg(long, value_name = "DIR", default_value = ".local")]
    dir: PathBuf,
}

/// How to start.
#[derive(Debug, Clone, Args)]
pub(crate) struct Up {
    #[command(flatten)]
    place: Place,
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
    place: Place,
}

#[derive(Debug, Args)]
struct Reset {
    #[command(flatten)]
    place: Place,
    /// Don't ask
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct Admin {
    #[command(subcommand)]
    command: admin::Command,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Service {
    which: Which,
    #[command(flatten)]
    place: Place,
    #[arg(long)]
    set: Vec<String>,
}

/// Reads the command line and does what it says.
pub(crate) fn run() -> Result<ExitCode> {
    let cli = Cli::parse();
    service::tls::install();
    match cli.command.unwrap_or(Command::Up(cli.up)) {
        Command::Up(up) => on_runtime(stack::up(Folder::open(&up.place.dir)?, up))?,
        Command::Down(place) => on_runtime(state::down(Folder::open(&place.dir)?))?,
        Command::Status(place) => return on_runtime(state::status(Folder::open(&place.dir)?)),
        Command::Logs(asked) => logs::show(&Folder::open(&asked.place.dir)?, &asked)?,
        Command::Reset(asked) => state::reset(&Folder::open(&asked.place.dir)?, asked.yes)?,
        Command::Demo(place) => on_runtime(demo::run(Folder::open(&place.dir)?))?,
        Command::Admin(asked) => on_runtime(admin::run(Folder::open(&asked.place.dir)?, asked.command))?,
        Command::Service(asked) => services::run(asked.which, &Folder::open(&asked.place.dir)?, asked.set)?,
        Command::ClickhouseFront(args) => front::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn on_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(work)
}
