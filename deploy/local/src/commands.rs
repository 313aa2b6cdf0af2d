//! Dispatch of the commands.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use sandbox::clickhouse_http;

use crate::arguments::{Cli, Command};
use crate::folder::Folder;
use crate::stack::services;
use crate::{admin, demo, logs, stack, status};

/// Parses the command line and executes the command.
pub(crate) fn run() -> Result<ExitCode> {
    let cli = Cli::parse();
    service::tls::install();
    match cli.command.unwrap_or(Command::Up(cli.up)) {
        Command::Up(up) if up.detach => on_runtime(status::detach(&Folder::open(&up.data_dir.dir)?, &up))?,
        Command::Up(up) => on_runtime(stack::up(Folder::open(&up.data_dir.dir)?, up))?,
        Command::Down(data_dir) => on_runtime(status::down(Folder::open(&data_dir.dir)?))?,
        Command::Status(data_dir) => return on_runtime(status::status(Folder::open(&data_dir.dir)?)),
        Command::Logs(args) => logs::show(&Folder::open(&args.data_dir.dir)?, &args)?,
        Command::Reset(args) => status::reset(&Folder::open(&args.data_dir.dir)?, args.yes)?,
        Command::Demo(data_dir) => on_runtime(demo::run(Folder::open(&data_dir.dir)?))?,
        Command::Admin(args) => on_runtime(admin::run(Folder::open(&args.dir)?, args.command))?,
        Command::Service(args) => services::run(args.which, &Folder::open(&args.data_dir.dir)?, args.set)?,
        Command::ClickhouseHttp(args) => clickhouse_http::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn on_runtime<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(work)
}
