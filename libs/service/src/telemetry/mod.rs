//! What the outside may see of the inside: logs on standard error always; traces, metrics and logs over OTLP when
//! an endpoint is configured. One trace runs through every service a visitor's request touches.

mod export;
mod trace_context;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

pub use trace_context::{continue_from, extract, inject, traceparent};

/// `[telemetry]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What is logged: a level, or a filter such as `info,store=debug`.
    pub log: String,
    /// How it is written.
    pub format: Format,
    /// Base address of an OTLP/HTTP collector; empty turns OTLP off.
    pub otlp_endpoint: String,
    /// How often metrics are sent there.
    #[serde(with = "crate::config::duration")]
    pub otlp_metrics_interval: Duration,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Spans are being exported: until then, context propagation has nothing to propagate.
static TRACING: AtomicBool = AtomicBool::new(false);

pub(crate) fn tracing_is_on() -> bool {
    TRACING.load(Ordering::Relaxed)
}

/// Turns logging, and OTLP if configured, on for this process.
///
/// The first call counts: services that share a process may all call this, and the later ones get a guard with
/// nothing to flush.
///
/// # Errors
/// If the log filter or the OTLP endpoint can't be used.
pub fn init(config: &Config, service_name: &str) -> anyhow::Result<Guard> {
    let filter =
        EnvFilter::try_new(&config.log).with_context(|| format!("telemetry.log = {:?}", config.log))?;
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(true);
    let lines = match config.format {
        Format::Text if std::io::IsTerminal::is_terminal(&std::io::stderr()) => lines.boxed(),
        // The default fields work out their colours even where none is shown: on every request's span.
        Format::Text => lines.with_ansi(false).fmt_fields(debug_fn(write_field).delimited(" ")).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter));
    if config.otlp_endpoint.is_empty() {
        let _already_on = subscriber.try_init();
        return Ok(Guard { providers: None });
    }
    if tracing::dispatcher::has_been_set() {
        return Ok(Guard { providers: None });
    }
    crate::tls::install();
    let providers = export::Providers::connect(config, service_name)?;
    let installed = subscriber.with(providers.spans()).with(providers.logs()).try_init().is_ok();
    TRACING.store(installed, Ordering::Relaxed);
    Ok(Guard { providers: Some(providers) })
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn std::fmt::Debug) -> std::fmt::Result {
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        name => write!(writer, "{name}={value:?}"),
    }
}

/// Keeps OTLP going; what is still waiting is sent when it is shut down or dropped.
#[must_use = "dropping it ends telemetry"]
#[derive(Debug)]
pub struct Guard {
    providers: Option<export::Providers>,
}

impl Guard {
    /// Sends what is waiting now. Blocks nobody: the exporters' own threads do it.
    pub async fn flush(&self) {
        if let Some(providers) = self.providers.clone() {
            let _ended = tokio::task::spawn_blocking(move || providers.flush()).await;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(providers) = self.providers.take() {
            // Its own thread: the blocking exporter must not run on one of the runtime's.
            let _ended = std::thread::spawn(move || providers.shut_down()).join();
        }
    }
}
