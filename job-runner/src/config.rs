//! The job-runner's settings; `config.toml` beside `src` says what each means.

use std::time::Duration;

use serde::Deserialize;
use service::config::{Defaults, RenamedKeys, Secret};

/// The commented defaults.
pub const DEFAULTS: Defaults = Defaults { toml: include_str!("../config.toml"), renamed_keys: RENAMED_KEYS };

/// Keys of earlier releases, `(old path, new path)`. The old one is refused with the new one's name.
const RENAMED_KEYS: &RenamedKeys = &[];

/// How long components may take to end: a delivery under way may take its whole timeout.
pub const GRACE: Duration = Duration::from_secs(20);

/// Everything the job-runner can be told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Postgres.
    pub store: store::Config,
    /// Redis.
    pub redis: cache::Config,
    /// ClickHouse.
    pub warehouse: warehouse::Config,
    /// Where bytes of users are.
    pub blobs: blobs::Config,
    /// When bytes are let go of.
    pub tidy: Tidy,
    /// What must never be shown.
    pub secrets: Secrets,
    /// How jobs are run.
    pub queue: Queue,
    /// How the outbox is emptied.
    pub outbox: Outbox,
    /// How webhooks are delivered.
    pub webhooks: Webhooks,
    /// How what has ended is deleted.
    pub purge: Purge,
    /// How requests for help reach the operator, and submissions forms' owners.
    pub mail: Mail,
    /// What the outgoing guard lets through.
    pub outbound: Outbound,
    /// When kept answers are forgotten.
    pub idempotency: Idempotency,
    /// How pages are published when their time comes.
    pub publishing: Publishing,
    /// How webhooks are told of forms whose time has come.
    pub closings: Closings,
    /// When archived entries are forgotten.
    pub archives: Archives,
    /// When it is forgotten which ids of two days were one visitor's.
    pub links: Links,
}

/// Section `[secrets]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Opens secrets at rest.
    pub master_key: Secret,
}

/// Section `[queue]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Jobs run at once.
    pub concurrency: usize,
    /// Jobs in Redis at once.
    pub limit: usize,
    /// How long a killed worker's job waits.
    #[serde(with = "service::config::duration")]
    pub lease: Duration,
}

/// Section `[outbox]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outbox {
    /// How often the outbox is looked at.
    #[serde(with = "service::config::duration")]
    pub every: Duration,
}

/// Section `[webhooks]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhooks {
    /// Pauses before each attempt.
    #[serde(with = "service::config::duration::list")]
    pub schedule: Vec<Duration>,
    /// How long a receiver may take.
    #[serde(with = "service::config::duration")]
    pub timeout: Duration,
    /// How often due deliveries are looked for.
    #[serde(with = "service::config::duration")]
    pub look_every: Duration,
    /// How long what is due, or has ended, gathers while there is more of it.
    #[serde(with = "service::config::duration")]
    pub gather_for: Duration,
    /// Attempts under way at once.
    pub concurrency: u32,
    /// Attempts under way at once at one webhook.
    pub per_webhook: u32,
    /// How long a webhook may only fail.
    #[serde(with = "service::config::duration")]
    pub deactivate_after: Duration,
}

/// Section `[purge]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purge {
    /// How often expired trials and due purges of events are looked for.
    #[serde(with = "service::config::duration")]
    pub every: Duration,
    /// How long after ClickHouse has forgotten something it is told once more.
    #[serde(with = "service::config::duration")]
    pub again_after: Duration,
    /// How long a deletion that has not ended is left alone.
    #[serde(with = "service::config::duration")]
    pub retry_after: Duration,
    /// How often rows that were deleted in ClickHouse are taken off its disk.
    #[serde(with = "service::config::duration")]
    pub erase_every: Duration,
    /// How old spam becomes.
    #[serde(with = "service::config::duration")]
    pub spam_after: Duration,
}

/// Section `[tidy]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tidy {
    /// How often it is looked for bytes that nothing needs.
    #[serde(with = "service::config::duration")]
    pub every: Duration,
    /// How long a deploy may wait to be processed.
    #[serde(with = "service::config::duration")]
    pub abandoned_after: Duration,
    /// How long a file may wait to be handed in with a form.
    #[serde(with = "service::config::duration")]
    pub unbound_after: Duration,
    /// How long something is left alone that couldn't be deleted.
    #[serde(with = "service::config::duration")]
    pub retry_after: Duration,
    /// How old what a killed service left halfway becomes.
    #[serde(with = "service::config::duration")]
    pub stranded_after: Duration,
    /// How often that is looked for.
    #[serde(with = "service::config::duration")]
    pub stranded_every: Duration,
}

/// Section `[mail]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// The server, with its password; empty if there is none.
    pub smtp_url: Secret,
    /// Who writes.
    pub from: String,
    /// Who reads.
    pub to: String,
    /// How often due mails are looked for.
    #[serde(with = "service::config::duration")]
    pub every: Duration,
    /// Mails taken up at once.
    pub batch: usize,
    /// How long an attempt may take.
    #[serde(with = "service::config::duration")]
    pub timeout: Duration,
    /// Pauses before each attempt.
    #[serde(with = "service::config::duration::list")]
    pub schedule: Vec<Duration>,
    /// Mails of submissions that a form may cause.
    pub per_form_and_hour: u32,
    /// When a mail to an owner that nobody sends is forgotten.
    #[serde(with = "service::config::duration")]
    pub forget_after: Duration,
    /// When somebody who was asked and never answered is forgotten.
    #[serde(with = "service::config::duration")]
    pub asked_for: Duration,
}

/// Section `[outbound]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outbound {
    /// Hosts and networks reached although the guard would refuse them.
    pub allow: Vec<String>,
}

/// Section `[idempotency]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    /// How old an answer becomes.
    #[serde(with = "service::config::duration")]
    pub kept_for: Duration,
    /// How often older ones are deleted.
    #[serde(with = "service::config::duration")]
    pub forget_every: Duration,
}

/// Section `[publishing]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publishing {
    /// How often newly scheduled pages are looked for.
    #[serde(with = "service::config::duration")]
    pub every: Duration,
}

/// Section `[closings]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closings {
    /// How often forms are looked for that have closed.
    #[serde(with = "service::config::duration")]
    pub every: Duration,
}

/// Section `[archives]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archives {
    /// How old an archive becomes.
    #[serde(with = "service::config::duration")]
    pub kept_for: Duration,
    /// How often older ones are deleted.
    #[serde(with = "service::config::duration")]
    pub forget_every: Duration,
}

/// Section `[links]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// How long it is known.
    #[serde(with = "service::config::duration")]
    pub kept_for: Duration,
    /// How often what is older is forgotten.
    #[serde(with = "service::config::duration")]
    pub forget_every: Duration,
}
