//! The control plane's settings; `config.toml` beside `src` says what each means.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use service::config::{Defaults, RenamedKeys, Secret};

/// The commented defaults.
pub const DEFAULTS: Defaults = Defaults { toml: include_str!("../config.toml"), renamed_keys: RENAMED_KEYS };

/// Keys of earlier releases, `(old path, new path)`. The old one is refused with the new one's name.
const RENAMED_KEYS: &RenamedKeys = &[];

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
    /// Where bytes of users are.
    pub blobs: blobs::Config,
    /// How upload addresses are given out.
    pub uploads: Uploads,
    /// How sites are made from zips.
    pub deploys: Deploys,
    /// What must never be shown.
    pub secrets: Secrets,
    /// How trials are made.
    pub trial: Trial,
    /// How keys are looked up.
    pub keys: Keys,
    /// How subdomains are renamed.
    pub subdomains: Subdomains,
    /// How plans are changed.
    pub upgrade: Upgrade,
    /// How people sign in.
    pub signin: crate::signin::Config,
    /// How webhooks are tested, and what of them is kept.
    pub webhooks: Webhooks,
    /// What the outgoing guard lets through.
    pub outbound: Outbound,
    /// How calls are made once.
    pub idempotency: Idempotency,
    /// How submissions are exported.
    pub exports: Exports,
    /// Whom forms may have asked whether they want mails.
    pub recipients: Recipients,
    /// What questions to the warehouse may take.
    pub analytics: crate::query_admission::Analytics,
    /// How many large bodies are taken at once.
    pub large_bodies: crate::body_budget::LargeBodies,
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

/// Section `[uploads]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uploads {
    /// How long an address is good.
    #[serde(with = "service::config::duration")]
    pub expire_after: Duration,
}

/// Section `[deploys]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deploys {
    /// Deploys of one account that wait for their zip or with it.
    pub open_max: i64,
    /// How long a dead process keeps others from a deploy.
    #[serde(with = "service::config::duration")]
    pub lease: Duration,
    /// How often progress is written down.
    #[serde(with = "service::config::duration")]
    pub progress_every: Duration,
    /// How many deploys of a site can be gone back to.
    pub kept: i64,
}

/// Section `[recipients]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipients {
    /// In what time they are counted.
    #[serde(with = "service::config::duration")]
    pub window: Duration,
    /// Addresses that one account has asked.
    pub per_account: i64,
    /// Accounts that have one address asked.
    pub per_address: i64,
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

/// Section `[upgrade]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// Who changes the plan.
    pub mode: UpgradeMode,
    /// What a person does to get a larger plan, where the operator changes it.
    pub steps: Vec<String>,
}

/// Who changes a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UpgradeMode {
    /// The call itself.
    Instant,
    /// The operator.
    Manual,
}

/// Section `[subdomains]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subdomains {
    /// How often in 24 hours.
    pub renames_per_day: u32,
    /// How long the name that was given up stays its account's.
    #[serde(with = "service::config::duration")]
    pub name_kept: Duration,
}

/// Section `[keys]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// How long a look-up may be remembered.
    #[serde(with = "service::config::duration")]
    pub cache: Duration,
}

/// Section `[exports]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exports {
    /// Files written at once.
    pub at_once: usize,
    /// Of these, for one account.
    pub per_account: usize,
    /// How long one waits for a place.
    #[serde(with = "service::config::duration")]
    pub wait: Duration,
    /// How long a file may take.
    #[serde(with = "service::config::duration")]
    pub within: Duration,
    /// How long a reader may take nothing.
    #[serde(with = "service::config::duration")]
    pub patience: Duration,
}

/// Section `[webhooks]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhooks {
    /// How long a secret signs on that was replaced.
    #[serde(with = "service::config::duration")]
    pub previous_secret_for: Duration,
    /// How long the call that tests a webhook waits for its receiver.
    #[serde(with = "service::config::duration")]
    pub test_wait: Duration,
    /// How long ago deliveries may have failed that are sent again all at once.
    #[serde(with = "service::config::duration")]
    pub retry_within: Duration,
    /// How many of them one call takes up.
    pub retry_max: i64,
}

/// Section `[outbound]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outbound {
    /// Hosts and networks that webhooks may have although the guard would refuse them.
    pub allow: Vec<String>,
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
