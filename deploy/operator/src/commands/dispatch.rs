//! Dispatch of the commands.

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory as _, Parser as _};

use super::context::Context;
use super::{admin, backup, check, deliveries, images, keys, migrate, outbox, restore, secrets, segments};
use crate::actor;
use crate::arguments::{Cli, Command};
use crate::settings::{self, DEFAULTS, Settings};

/// Parses the command line and executes the command.
pub(crate) fn run() -> Result<ExitCode> {
    let cli = Cli::parse();
    if cli.print_config {
        println!("{}{}", DEFAULTS.toml, service::config::BASE_DEFAULTS.toml);
        return Ok(ExitCode::SUCCESS);
    }
    let Some(command) = cli.command else {
        Cli::command().print_help()?;
        return Ok(ExitCode::FAILURE);
    };
    // These work on files and need no settings.
    match &command {
        Command::Secrets(args) => return secrets::run(args),
        Command::Images(args) => return images::run(args),
        _ => {}
    }
    service::tls::install();
    let sources = settings::sources(cli.global.config, cli.global.set);
    let settings = match (Settings::load(&sources), &command) {
        (Err(service::config::Error::Insecure { problems }), Command::Check(args)) => {
            return check::print_insecure(problems, args);
        }
        (settings, _) => settings?,
    };
    if !matches!(command, Command::Check(_)) {
        for warning in &settings.warnings {
            eprintln!("warning: {warning}");
        }
    }
    let actor = cli.global.actor.unwrap_or_else(actor::user_at_host);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let context = Context::new(sources, settings, actor)?;
        match command {
            Command::Migrate(args) => migrate::run(&context, &args).await,
            Command::Check(args) => check::run(&context, &args).await,
            Command::Admin(args) => admin::run(&context, &args).await,
            Command::Deliveries(args) => deliveries::run(&context, &args).await,
            Command::Outbox(args) => outbox::run(&context, &args).await,
            Command::Segments(args) => segments::run(&context, &args).await,
            Command::Keys(args) => keys::run(&context, &args).await,
            Command::Backup(args) => backup::run(&context, &args).await,
            Command::Restore(args) => restore::run(&context, &args).await,
            Command::Secrets(args) => secrets::run(&args),
            Command::Images(args) => images::run(&args),
        }
    })
}
