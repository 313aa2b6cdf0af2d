//! The `main` of every service: arguments, settings, TLS provider, telemetry, sockets, signals. The exit code is 0 only if
//! the service stopped because of a requested shutdown.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde::de::DeserializeOwned;

use crate::config::{self, BASE_DEFAULTS, BaseConfig, Defaults, Sources};
use crate::{Listeners, Shutdown, adopt_passed_sockets, telemetry, tls};

const AFTER_HELP: &str = "\
One commented file documents every setting and its default: --print-config prints it.
A setting comes from --set, else from the environment, else from --config, else from that file:

  --set postgres.max_connections=20
  WEBRUNTIME_POSTGRES__MAX_CONNECTIONS=20
  [postgres]
  max_connections = 20

Unknown keys are errors. Entries for sections this service doesn't have are ignored.";

#[derive(Debug, Parser)]
#[command(after_help = AFTER_HELP, disable_version_flag = true)]
struct Arguments {
    /// A TOML file with the settings that differ from the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting, as section.key=value. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print the commented defaults, which are the manual, and exit.
    #[arg(long)]
    print_config: bool,
}

/// The inputs of a service's `run`.
#[derive(Debug)]
pub struct Started<C> {
    /// The service's own settings.
    pub config: C,
    /// The settings that every service has.
    pub base: BaseConfig,
    /// The bound sockets.
    pub listeners: Listeners,
    /// The shutdown token, requested by SIGTERM and SIGINT.
    pub shutdown: Shutdown,
}

/// Runs a service as a program and returns its exit code. `name` is the program's name.
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
        #[expect(clippy::print_stdout, reason = "--print-config prints to standard output")]
        {
            println!("{}{}", defaults.toml, BASE_DEFAULTS.toml);
        }
        return ExitCode::SUCCESS;
    }
    match start(name, defaults, arguments, run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "logging may not be initialized yet")]
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
    let config::Loaded { config, base, unused, .. } = config::load(defaults, &sources)?;
    // Before there are threads, because it changes the environment.
    adopt_passed_sockets()?;
    tls::install();
    let _telemetry = telemetry::init(&base.telemetry, name)?;
    if !unused.is_empty() {
        tracing::info!(?unused, "ignored settings of sections this service does not have");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let shutdown = Shutdown::new();
        shutdown.on_signals()?;
        // They refuse connections until `run` serves them, which is after it has checked the schema.
        let listeners = Listeners::reserve(&base.listen)?;
        tracing::info!(
            main = %listeners.main.local_addr()?, ops = %listeners.ops.local_addr()?, "{name} starts"
        );
        let outcome = run(Started { config, base, listeners, shutdown }).await;
        tracing::info!("{name} has stopped");
        outcome
    })
}
