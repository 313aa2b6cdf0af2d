//! The job-runner's settings. `config.toml` documents every key.

use std::net::IpAddr;
use std::time::Duration;

use serde::Deserialize;
use service::config::{Defaults, RenamedKeys, Secret};

use crate::acme;

/// The commented defaults.
pub const DEFAULTS: Defaults = Defaults { toml: include_str!("../config.toml"), renamed_keys: RENAMED_KEYS };

/// Keys of earlier releases, `(old path, new path)`. The old one is refused with the new one's name.
const RENAMED_KEYS: &RenamedKeys = &[
    ("queue.concurrency", "queue.max_concurrent"),
    ("queue.limit", "queue.max_jobs"),
    ("queue.lease", "queue.lease_ttl"),
    ("outbox.every", "outbox.poll_interval"),
    ("webhooks.schedule", "webhooks.retry_schedule"),
    ("webhooks.look_every", "webhooks.poll_interval"),
    ("webhooks.gather_for", "webhooks.batch_window"),
    ("webhooks.concurrency", "webhooks.max_concurrent"),
    ("webhooks.per_webhook", "webhooks.max_concurrent_per_webhook"),
    ("purge.every", "purge.poll_interval"),
    ("purge.again_after", "purge.second_pass_after"),
    ("purge.retry_after", "purge.retry_interval"),
    ("purge.erase_every", "purge.erase_interval"),
    ("purge.spam_after", "purge.spam_retention"),
    ("tidy", "garbage_collection"),
    ("tidy.every", "garbage_collection.poll_interval"),
    ("tidy.abandoned_after", "garbage_collection.deploy_ttl"),
    ("tidy.unbound_after", "garbage_collection.unbound_file_ttl"),
    ("tidy.retry_after", "garbage_collection.retry_interval"),
    ("tidy.stranded_after", "garbage_collection.orphan_min_age"),
    ("tidy.stranded_every", "garbage_collection.orphan_scan_interval"),
    ("mail.every", "mail.poll_interval"),
    ("mail.batch", "mail.batch_size"),
    ("mail.schedule", "mail.retry_schedule"),
    ("mail.per_form_and_hour", "mail.max_per_form_and_hour"),
    ("mail.forget_after", "mail.ttl"),
    ("mail.asked_for", "mail.confirmation_ttl"),
    ("idempotency.kept_for", "idempotency.retention"),
    ("idempotency.forget_every", "idempotency.cleanup_interval"),
    ("publishing.every", "publishing.poll_interval"),
    ("closings", "form_closing"),
    ("closings.every", "form_closing.poll_interval"),
    ("archives.kept_for", "archives.retention"),
    ("archives.forget_every", "archives.cleanup_interval"),
    ("links", "visitor_id_links"),
    ("links.kept_for", "visitor_id_links.retention"),
    ("links.forget_every", "visitor_id_links.cleanup_interval"),
];

/// How long components may take to stop. A delivery in flight may take its whole timeout.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);

/// The job-runner's settings, one field per section.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub(crate) acme: acme::Settings,
    pub(crate) http: Http,
    pub(crate) store: store::Config,
    pub(crate) redis: cache::Config,
    pub(crate) warehouse: warehouse::Config,
    pub(crate) blobs: blobs::Config,
    pub(crate) garbage_collection: GarbageCollection,
    pub(crate) secrets: Secrets,
    pub(crate) queue: Queue,
    pub(crate) outbox: Polling,
    pub(crate) webhooks: Webhooks,
    pub(crate) automations: Automations,
    pub(crate) purge: Purge,
    pub(crate) mail: Mail,
    pub(crate) outbound: Outbound,
    pub(crate) idempotency: Cleanup,
    pub(crate) publishing: Polling,
    pub(crate) form_closing: Polling,
    pub(crate) archives: Cleanup,
    pub(crate) activity: Polling,
    pub(crate) visitor_id_links: Cleanup,
    pub(crate) domains: Domains,
}

/// Section `[http]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    pub(crate) base_url: String,
    pub(crate) sites_domain: String,
    pub(crate) edges: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Secrets {
    pub(crate) master_key: Secret,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Queue {
    pub(crate) max_concurrent: usize,
    pub(crate) max_jobs: usize,
    #[serde(with = "service::config::duration")]
    pub(crate) lease_ttl: Duration,
}

/// Sections of tasks that look for due work.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Polling {
    #[serde(with = "service::config::duration")]
    pub(crate) poll_interval: Duration,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Webhooks {
    #[serde(with = "service::config::duration::list")]
    pub(crate) retry_schedule: Vec<Duration>,
    #[serde(with = "service::config::duration")]
    pub(crate) timeout: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) poll_interval: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) batch_window: Duration,
    pub(crate) max_concurrent: u32,
    pub(crate) max_concurrent_per_webhook: u32,
    #[serde(with = "service::config::duration")]
    pub(crate) deactivate_after: Duration,
}

/// Section `[automations]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Automations {
    #[serde(with = "service::config::duration")]
    pub(crate) poll_interval: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) batch_window: Duration,
    pub(crate) max_concurrent: u32,
    pub(crate) max_concurrent_per_account: u32,
    pub(crate) max_concurrent_heavy_per_account: usize,
    #[serde(with = "service::config::duration")]
    pub(crate) lease_ttl: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) cleanup_interval: Duration,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Purge {
    #[serde(with = "service::config::duration")]
    pub(crate) poll_interval: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) second_pass_after: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) name_retention: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) retry_interval: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) erase_interval: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) spam_retention: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) statement_timeout: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) idle_in_transaction_timeout: Duration,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GarbageCollection {
    #[serde(with = "service::config::duration")]
    pub(crate) poll_interval: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) deploy_ttl: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) unbound_file_ttl: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) retry_interval: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) orphan_min_age: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) orphan_scan_interval: Duration,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mail {
    /// The server's URL, which may contain its password; empty if there is no server.
    pub(crate) smtp_url: Secret,
    /// Replaces the URL's password unless it is empty.
    pub(crate) password: Secret,
    pub(crate) from: String,
    pub(crate) to: String,
    #[serde(with = "service::config::duration")]
    pub(crate) poll_interval: Duration,
    pub(crate) batch_size: usize,
    #[serde(with = "service::config::duration")]
    pub(crate) timeout: Duration,
    #[serde(with = "service::config::duration::list")]
    pub(crate) retry_schedule: Vec<Duration>,
    pub(crate) max_per_form_and_hour: u32,
    #[serde(with = "service::config::duration")]
    pub(crate) ttl: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) confirmation_ttl: Duration,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outbound {
    pub(crate) allow: Vec<String>,
}

/// Section `[domains]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Domains {
    pub(crate) cname_target: String,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) resolvers: Vec<String>,
    #[serde(with = "service::config::duration::list")]
    pub(crate) check_schedule: Vec<Duration>,
    pub(crate) caa_identities: Vec<String>,
    #[serde(with = "service::config::duration")]
    pub(crate) poll_interval: Duration,
}

/// Sections of tasks that delete data after its retention.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cleanup {
    #[serde(with = "service::config::duration")]
    pub(crate) retention: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) cleanup_interval: Duration,
}
