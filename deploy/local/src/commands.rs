//! Who does what the command line says.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use sandbox::clickhouse_http;

use crate::arguments::{Cli, Command};
use crate::folder::Folder;
use crate::{admin, demo, logs, services, stack, state};

/// Reads the command line and does what it says.
pub(crate) fn run() -> Result<ExitCode> {
    let cli = Cli::parse();
    service::tls::install();
    match cli.command.unwrap_or(Command::Up(cli.up)) {
        Command::Up(up) if up.detach => on_runtime(state::detach(&Folder::open(&up.place.dir)?, &up))?,
        Command::Up(up) => on_runtime(stack::up(Folder::open(&up.place.dir)?, up))?,
        Command::Down(place) => on_runtime(state::down(Folder::open(&place.dir)?))?,
        Command::Status(place) => return on_runtime(state::status(Folder::open(&place.dir)?)),
        Command::Logs(asked) => logs::show(&Folder::open(&asked.place.dir)?, &asked)?,
        Command::Reset(asked) => state::reset(&Folder::open(&asked.place.dir)?, asked.yes)?,
        Command::Demo(place) => on_runtime(demo::run(Folder::open(&place.dir)?))?,
        Command::Admin(asked) => on_runtime(admin::run(Folder::open(&asked.dir)?, asked.command))?,
        Command::Service(asked) => services::run(asked.which, &Folder::open(&asked.place.dir)?, asked.set)?,
        Command::ClickhouseHttp(args) => clickhouse_http::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn on_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(work)
}
