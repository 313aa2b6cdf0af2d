//! The control plane's settings; `config.toml` beside `src` says what each means.

use std::time::Duration;

use serde::Deserialize;
use service::config::Secret;

/// The commented defaults.
pub const DEFAULTS: &str = include_str!("../config.toml");

/// How long components may take to end.
pub const GRACE: Duration = Duration::from_secs(15);

/// Everything the control plane can be told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Its public addresses.
    pub http: Http,
    /// Postgres.
    pub store: store::Config,
    /// ClickHouse.
    pub warehouse: warehouse::Config,
    /// Redis.
    pub redis: cache::Config,
    /// What must never be shown.
    pub secrets: Secrets,
    /// How trials are made.
    pub trial: Trial,
    /// How keys are looked up.
    pub keys: Keys,
    /// How calls are made once.
    pub idempotency: Idempotency,
}

/// Section `[http]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// The address visitors and API clients use.
    pub base_url: String,
    /// The domain of all sites.
    pub sites_domain: String,
}

/// Section `[secrets]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Seals secrets at rest.
    pub master_key: Secret,
    /// Mixed into key fingerprints.
    pub key_pepper: Secret,
    /// Proves an edge.
    pub edge_token: Secret,
}

/// Section `[trial]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// How long a trial may be claimed.
    #[serde(with = "service::config::duration")]
    pub claim_window: Duration,
    /// Trials of one address in an hour.
    pub per_hour: u32,
    /// Trials of one address in a day.
    pub per_day: u32,
    /// How long a trial waits for the counters that replicas share.
    #[serde(with = "service::config::duration")]
    pub patience: Duration,
}

/// Section `[keys]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// How long a look-up may be remembered.
    #[serde(with = "service::config::duration")]
    pub cache: Duration,
}

/// Section `[idempotency]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    /// How long an answer is given again.
    #[serde(with = "service::config::duration")]
    pub kept_for: Duration,
    /// How long a dead process keeps others from its calls.
    #[serde(with = "service::config::duration")]
    pub lease: Duration,
}
