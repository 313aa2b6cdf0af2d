//! Section `[telemetry]` of a service's configuration.

use std::time::Duration;

use serde::Deserialize;

/// `[telemetry]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The log filter: a level, or a filter such as `info,store=debug`.
    pub log: String,
    /// The log format.
    pub format: Format,
    /// The base address of an OTLP/HTTP collector. Empty turns OTLP off.
    pub otlp_endpoint: String,
    /// The interval between metric exports.
    #[serde(with = "crate::config::duration")]
    pub otlp_metrics_interval: Duration,
    /// Warnings about the settings, to be logged: they are read before there is a log.
    #[serde(skip)]
    pub settings_warnings: Vec<String>,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Readable text.
    Text,
    /// One JSON object per line.
    Json,
}
