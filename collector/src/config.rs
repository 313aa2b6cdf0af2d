//! The collector's settings; `config.toml` beside `src` says what each means.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use service::config::Secret;

/// The commented defaults.
pub const DEFAULTS: &str = include_str!("../config.toml");

/// Everything the collector can be told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Postgres.
    pub store: store::Config,
    /// ClickHouse.
    pub warehouse: warehouse::Config,
    /// Redis.
    pub redis: cache::Config,
    /// What must never be shown.
    pub secrets: Secrets,
    /// Which events are taken.
    pub collector: Collector,
    /// How many of an account are taken.
    pub quota: Quota,
    /// Where they wait.
    pub segments: Segments,
}

/// Section `[secrets]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Proves an edge.
    pub edge_token: Secret,
}

/// Section `[collector]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collector {
    /// Events of one address in a minute.
    pub events_per_minute: u32,
    /// How long a site's look-up may be remembered.
    #[serde(with = "service::config::duration")]
    pub sites_fresh: Duration,
    /// Whether events may say when they happened.
    pub accept_event_time: bool,
    /// Files of locations.
    pub location_files: Vec<PathBuf>,
    /// How often drops are written down.
    #[serde(with = "service::config::duration")]
    pub drops_every: Duration,
    /// The longest silence within a visit.
    #[serde(with = "service::config::duration")]
    pub visit_gap: Duration,
    /// The longest visit.
    #[serde(with = "service::config::duration")]
    pub visit_longest: Duration,
}

/// Section `[quota]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Events leased at a time, at most.
    pub block: i64,
    /// How long an account keeps a block it doesn't use.
    #[serde(with = "service::config::duration")]
    pub idle: Duration,
    /// How long it is believed that a month is used up.
    #[serde(with = "service::config::duration")]
    pub ask_again: Duration,
    /// How long an event waits for a block.
    #[serde(with = "service::config::duration")]
    pub patience: Duration,
}

/// Section `[segments]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segments {
    /// The folder.
    pub folder: PathBuf,
    /// The age at which a segment is sealed.
    #[serde(with = "service::config::duration")]
    pub seal_after: Duration,
    /// The size at which it is, whatever its age.
    pub bytes_max: u64,
    /// Bytes that may wait.
    pub unsent_bytes_max: u64,
}
