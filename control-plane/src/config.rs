//! The control plane's settings. `config.toml` documents each setting and holds the defaults.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use service::config::{Defaults, RenamedKeys, Secret};

/// The commented defaults.
pub const DEFAULTS: Defaults = Defaults { toml: include_str!("../config.toml"), renamed_keys: RENAMED_KEYS };

/// Keys of earlier releases, as `(old path, new path)`.
const RENAMED_KEYS: &RenamedKeys = &[
    ("analytics.at_once", "analytics.max_concurrent"),
    ("analytics.at_once_per_account", "analytics.max_concurrent_per_account"),
    ("analytics.memory_mib", "analytics.max_memory_mib"),
    ("analytics.patience", "analytics.queue_timeout"),
    ("analytics.rows", "analytics.max_rows"),
    ("analytics.time", "analytics.timeout"),
    ("deploys.kept", "deploys.max_retained"),
    ("deploys.lease", "deploys.lease_ttl"),
    ("deploys.open_max", "deploys.max_open"),
    ("deploys.progress_every", "deploys.progress_interval"),
    ("exports.at_once", "exports.max_concurrent"),
    ("exports.patience", "exports.stall_timeout"),
    ("exports.per_account", "exports.max_concurrent_per_account"),
    ("exports.wait", "exports.queue_timeout"),
    ("exports.within", "exports.timeout"),
    ("idempotency.kept_for", "idempotency.retention"),
    ("idempotency.lease", "idempotency.lease_ttl"),
    ("keys.cache", "keys.cache_ttl"),
    ("large_bodies.arrive", "large_bodies.receive_timeout"),
    ("large_bodies.in_flight_mib", "large_bodies.max_in_flight_mib"),
    ("large_bodies.wait", "large_bodies.queue_timeout"),
    ("recipients.per_account", "recipients.max_per_account"),
    ("recipients.per_address", "recipients.max_per_address"),
    ("signin.attempt_window", "signin.attempt_ttl"),
    ("signin.attempts_per_hour", "signin.max_attempts_per_hour"),
    ("signin.discovery_every", "signin.discovery_max_age"),
    ("signin.session_absolute", "signin.session_max_age"),
    ("signin.session_idle", "signin.session_idle_timeout"),
    ("subdomains.name_kept", "subdomains.redirect_ttl"),
    ("subdomains.renames_per_day", "subdomains.max_renames_per_day"),
    ("trial.patience", "trial.redis_timeout"),
    ("trial.per_day", "trial.max_per_day"),
    ("trial.per_hour", "trial.max_per_hour"),
    ("uploads.expire_after", "uploads.url_ttl"),
    ("webhooks.previous_secret_for", "webhooks.previous_secret_ttl"),
    ("webhooks.retry_max", "webhooks.max_retries_per_call"),
    ("webhooks.retry_within", "webhooks.retry_max_age"),
    ("webhooks.test_wait", "webhooks.test_timeout"),
];

/// Time that components have to end on shutdown, once the running requests have ended.
pub const GRACE: Duration = Duration::from_secs(15);

/// All settings of the control plane.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Public addresses.
    pub http: Http,
    /// Limits of the API's calls.
    pub api: crate::admission::Api,
    /// Postgres.
    pub store: store::Config,
    /// The analytics database.
    pub warehouse: warehouse::Config,
    /// Redis.
    pub redis: cache::Config,
    /// The blob store.
    pub blobs: blobs::Config,
    /// Signed upload URLs.
    pub uploads: Uploads,
    /// Deploys of sites from zips.
    pub deploys: Deploys,
    /// Secrets, which are never logged.
    pub secrets: Secrets,
    /// Trials.
    pub trial: Trial,
    /// API keys.
    pub keys: Keys,
    /// Subdomains.
    pub subdomains: Subdomains,
    /// Plan changes.
    pub upgrade: Upgrade,
    /// Sign-in.
    pub signin: crate::signin::Config,
    /// Webhooks.
    pub webhooks: Webhooks,
    /// Automations.
    pub automations: crate::automations::Automations,
    /// The outbound guard.
    pub outbound: Outbound,
    /// Calls with an `Idempotency-Key`.
    pub idempotency: Idempotency,
    /// Exports of submissions.
    pub exports: Exports,
    /// Confirmation of mail recipients.
    pub recipients: Recipients,
    /// Checks of custom domains.
    pub domains: crate::domain_checks::Domains,
    /// Limits of analytics queries.
    pub analytics: crate::query_admission::Analytics,
    /// The budget of large request bodies.
    pub large_bodies: crate::large_bodies::LargeBodies,
}

/// Section `[http]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// The public URL of pages and API.
    pub base_url: String,
    /// The parent domain of all sites.
    pub sites_domain: String,
    /// The number of edges of this installation.
    pub edges: u32,
}

/// Section `[secrets]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Encrypts secrets at rest.
    pub master_key: Secret,
    /// Keys the fingerprints of API keys.
    pub key_pepper: Secret,
    /// Authenticates an edge.
    pub edge_token: Secret,
}

/// Section `[uploads]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uploads {
    /// Lifetime of an upload URL.
    #[serde(with = "service::config::duration")]
    pub url_ttl: Duration,
}

/// Section `[deploys]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deploys {
    /// Unprocessed deploys per account.
    pub max_open: i64,
    /// Zips unpacked at once.
    pub max_concurrent: usize,
    /// How long a deploy waits for its turn.
    #[serde(with = "service::config::duration")]
    pub queue_timeout: Duration,
    /// Lifetime of the lease on a deploy in process.
    #[serde(with = "service::config::duration")]
    pub lease_ttl: Duration,
    /// Interval of progress reports.
    #[serde(with = "service::config::duration")]
    pub progress_interval: Duration,
    /// Deploys per site that retain their files for rollbacks.
    pub max_retained: i64,
    /// Previews per account.
    pub max_previews: i64,
    /// Lifetime of a preview.
    #[serde(with = "service::config::duration")]
    pub preview_ttl: Duration,
}

/// Section `[recipients]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipients {
    /// The window of both limits.
    #[serde(with = "service::config::duration")]
    pub window: Duration,
    /// Confirmation mails per account.
    pub max_per_account: i64,
    /// Accounts that may have one address asked.
    pub max_per_address: i64,
}

/// Section `[trial]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// How long a trial can be claimed.
    #[serde(with = "service::config::duration")]
    pub claim_window: Duration,
    /// Trials per IP address and hour.
    pub max_per_hour: u32,
    /// Trials per IP address and day.
    pub max_per_day: u32,
    /// Timeout of the shared counters in Redis.
    #[serde(with = "service::config::duration")]
    pub redis_timeout: Duration,
}

/// Section `[upgrade]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// Whether a call changes the plan itself.
    pub mode: UpgradeMode,
    /// Instructions for the owner in manual mode.
    pub steps: Vec<String>,
}

/// How the plan of an account changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UpgradeMode {
    /// The upgrade call changes the plan.
    Instant,
    /// The operator changes the plan.
    Manual,
}

/// Section `[subdomains]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subdomains {
    /// Renames per subdomain in 24 hours.
    pub max_renames_per_day: u32,
    /// How long the old name redirects and stays reserved.
    #[serde(with = "service::config::duration")]
    pub redirect_ttl: Duration,
}

/// Section `[keys]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// How long a looked-up credential is cached.
    #[serde(with = "service::config::duration")]
    pub cache_ttl: Duration,
}

/// Section `[exports]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exports {
    /// Exports in progress.
    pub max_concurrent: usize,
    /// Exports in progress per account.
    pub max_concurrent_per_account: usize,
    /// How long an export waits for its permit.
    #[serde(with = "service::config::duration")]
    pub queue_timeout: Duration,
    /// Upper bound of an export's duration.
    #[serde(with = "service::config::duration")]
    pub timeout: Duration,
    /// How long a client may read nothing.
    #[serde(with = "service::config::duration")]
    pub stall_timeout: Duration,
}

/// Section `[webhooks]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhooks {
    /// How long a replaced secret still signs.
    #[serde(with = "service::config::duration")]
    pub previous_secret_ttl: Duration,
    /// How long a webhook test waits for the receiver.
    #[serde(with = "service::config::duration")]
    pub test_timeout: Duration,
    /// Concurrent webhook tests of one account.
    pub max_concurrent_tests: usize,
    /// Maximum age of failed deliveries that a call retries.
    #[serde(with = "service::config::duration")]
    pub retry_max_age: Duration,
    /// Deliveries that one call retries.
    pub max_retries_per_call: i64,
}

/// Section `[outbound]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outbound {
    /// Hosts and networks exempt from the outbound guard.
    pub allow: Vec<String>,
}

/// Section `[idempotency]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    /// How long a response is stored.
    #[serde(with = "service::config::duration")]
    pub retention: Duration,
    /// Lifetime of the lease on a call in progress.
    #[serde(with = "service::config::duration")]
    pub lease_ttl: Duration,
}
