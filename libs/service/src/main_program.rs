//! What each service's `main` would otherwise repeat: arguments, settings, TLS provider, telemetry, sockets,
//! signals. It ends with exit code 0 only if the service was asked to stop and did.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde::de::DeserializeOwned;

use crate::config::{self, BASE_DEFAULTS, BaseConfig, Defaults, Sources};
use crate::{Listeners, Shutdown, telemetry, tls};

const TEACHING: &str = "\
Every setting stands, with its default and its meaning, in one commented file: --print-config prints it.
A setting is taken from --set, else from the environment, else from --config, else from that file:

  --set postgres.max_connections=20
  WEBRUNTIME_POSTGRES__MAX_CONNECTIONS=20
  [postgres]
  max_connections = 20

Unknown keys are refused. Entries for sections this service doesn't have are left to the other services.";

#[derive(Debug, Parser)]
#[command(after_help = TEACHING, disable_version_flag = true)]
struct Arguments {
    /// A TOML file with the settings that differ from the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting, as section.key=value; may be given many times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print the commented defaults, which are the manual, and end.
    #[arg(long)]
    print_config: bool,
}

/// What a service is started with.
#[derive(Debug)]
pub struct Started<C> {
    /// Its own settings.
    pub config: C,
    /// The settings every service has.
    pub base: BaseConfig,
    /// Its sockets, bound.
    pub listeners: Listeners,
    /// Requested by SIGTERM and SIGINT.
    pub shutdown: Shutdown,
}

/// A whole `main`: `name` is the program's, `defaults` its commented default file, `run` the service.
///
/// ```no_run
/// # #[derive(serde::Deserialize)] struct Config {}
/// # async fn run(_: Config, _: service::Listeners, _: service::Shutdown) -> anyhow::Result<()> { Ok(()) }
/// fn main() -> std::process::ExitCode {
///     service::run_main("collector", "", |started| {
///         run(started.config, started.listeners, started.shutdown)
///     })
/// }
/// ```
pub fn run_main<C, F, Fut>(name: &'static str, defaults: impl Into<Defaults>, run: F) -> ExitCode
where
    C: DeserializeOwned,
    F: FnOnce(Started<C>) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let defaults = defaults.into();
    let command = <Arguments as clap::CommandFactory>::command().name(name);
    let arguments = match <Arguments as clap::FromArgMatches>::from_arg_matches(&command.get_matches()) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    if arguments.print_config {
        #[expect(clippy::print_stdout, reason = "printing is what was asked for")]
        {
            println!("{}{}", defaults.toml, BASE_DEFAULTS.toml);
        }
        return ExitCode::SUCCESS;
    }
    match start(name, defaults, arguments, run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "logging may not be set up yet")]
            {
                eprintln!("{name}: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn start<C, F, Fut>(
    name: &'static str,
    defaults: Defaults,
    arguments: Arguments,
    run: F,
) -> anyhow::Result<()>
where
    C: DeserializeOwned,
    F: FnOnce(Started<C>) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let sources = Sources::from_process(arguments.config, arguments.set);
    let config::Loaded { config, base, unused } = config::load(defaults, &sources)?;
    tls::install();
    let _telemetry = telemetry::init(&base.telemetry, name)?;
    if !unused.is_empty() {
        tracing::info!(?unused, "settings of sections this service doesn't have");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let shutdown = Shutdown::new();
        shutdown.on_signals()?;
        let listeners = Listeners::bind(&base.listen)?;
        tracing::info!(
            main = %listeners.main.local_addr()?, ops = %listeners.ops.local_addr()?, "{name} listens"
        );
        let outcome = run(Started { config, base, listeners, shutdown }).await;
        tracing::info!("{name} has ended");
        outcome
    })
}
