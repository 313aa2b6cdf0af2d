//! Initialization of logging and OTLP.

use anyhow::Context as _;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::FilterExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

use super::config::{Config, Format};
use super::export::Providers;
use super::repeated_warnings::RepeatedWarnings;
use super::state::set_tracing;

/// Initializes logging and, if configured, OTLP for this process.
///
/// Only the first call has an effect. Services that share a process may all call this; later calls return a guard with
/// nothing to flush. Fails if the log filter or the OTLP endpoint is invalid.
pub fn init(config: &Config, service_name: &str) -> anyhow::Result<Guard> {
    let filter =
        EnvFilter::try_new(&config.log).with_context(|| format!("telemetry.log = {:?}", config.log))?;
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(true);
    let lines = match config.format {
        Format::Text if std::io::IsTerminal::is_terminal(&std::io::stderr()) => lines.boxed(),
        // The default field formatter computes its colours for every request's span even if it prints none.
        Format::Text => lines.with_ansi(false).fmt_fields(debug_fn(write_field).delimited(" ")).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    if tracing::dispatcher::has_been_set() {
        return Ok(Guard { providers: None });
    }
    let repeated = RepeatedWarnings::start().context("starting the thread that counts warnings")?;
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter.and(repeated)));
    if config.otlp_endpoint.is_empty() {
        let _already_initialized = subscriber.try_init();
        log_warnings(config);
        return Ok(Guard { providers: None });
    }
    crate::tls::install();
    let providers = Providers::connect(config, service_name)?;
    set_tracing(subscriber.with(providers.spans()).with(providers.logs()).try_init().is_ok());
    log_warnings(config);
    Ok(Guard { providers: Some(providers) })
}

fn log_warnings(config: &Config) {
    for warning in &config.settings_warnings {
        tracing::warn!("{warning}");
    }
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn std::fmt::Debug) -> std::fmt::Result {
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        name => write!(writer, "{name}={value:?}"),
    }
}

/// Keeps OTLP export running. Dropping it exports the buffered signals and ends telemetry.
#[must_use = "dropping it ends telemetry"]
#[derive(Debug)]
pub struct Guard {
    providers: Option<Providers>,
}

impl Guard {
    /// Exports the buffered signals now. The exporters' own threads do it, so no runtime thread is blocked.
    pub async fn flush(&self) {
        if let Some(providers) = self.providers.clone() {
            let _joined = tokio::task::spawn_blocking(move || providers.flush()).await;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(providers) = self.providers.take() {
            // A thread of its own: the blocking exporter must not run on a runtime thread.
            let _joined = std::thread::spawn(move || providers.shut_down()).join();
        }
    }
}
