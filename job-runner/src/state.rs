//! What every job is handed.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use contract::{Job, Signal};
use domain::sealing::MasterKey;
use service::config::ExposeSecret;
use service::{Clock, Rng};

use crate::config::{Config, Purge, Tidy};
use crate::mail::Mailer;

/// One claims, one ends.
const DELIVERIES_CONNECTIONS: u32 = 2;

/// The job-runner's parts. Cheap to clone.
#[derive(Clone)]
pub struct Runner(Arc<Parts>);

/// See [`Runner`].
pub struct Parts {
    /// Postgres.
    pub(crate) db: store::Db,
    /// The same, for claiming deliveries and ending them.
    pub(crate) deliveries_db: store::Db,
    /// ClickHouse.
    pub(crate) warehouse: warehouse::Warehouse,
    /// What is due now.
    pub(crate) queue: queue::Queue<Job>,
    /// Tells services at once what has changed.
    pub(crate) bus: cache::Bus<Signal>,
    /// The guarded way out.
    pub(crate) outbound: outbound::Client,
    /// Where bytes of users are.
    pub(crate) blobs: blobs::Blobs,
    /// When bytes are let go of.
    pub(crate) tidy: Tidy,
    /// Opens webhook addresses and secrets.
    pub(crate) master_key: MasterKey,
    /// Pauses before each attempt of a webhook.
    pub(crate) schedule: Vec<Duration>,
    /// How long a webhook may only fail.
    pub(crate) deactivate_after: Duration,
    /// How what has ended is deleted.
    pub(crate) purge: Purge,
    /// When a mail to an owner that nobody sends is forgotten.
    pub(crate) forget_mail_after: Duration,
    /// When somebody who never said whether they want mails is forgotten.
    pub(crate) forget_asked_after: Duration,
    /// The way out for mail, where there is one.
    pub(crate) mailer: Option<Mailer>,
    /// Now.
    pub(crate) clock: Clock,
    /// Chance.
    pub(crate) rng: Rng,
}

impl Deref for Runner {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Runner {
    /// Puts the parts together. Redis and Postgres may be away.
    ///
    /// # Errors
    /// A setting can't be used.
    pub async fn new(config: &Config) -> anyhow::Result<Self> {
        let master_key = MasterKey::from_hex(config.secrets.master_key.expose_secret())
            .context("secrets.master_key must be 64 hexadecimal digits, the same as the control plane's")?;
        anyhow::ensure!(!config.webhooks.schedule.is_empty(), "webhooks.schedule needs at least one attempt");
        let queue = queue::Config {
            max_concurrent: config.queue.concurrency,
            max_jobs: config.queue.limit,
            lease_ttl: config.queue.lease,
            ..queue::Config::new(&config.redis.url, format!("{}:jobs", config.redis.prefix))
        };
        Ok(Self(Arc::new(Parts {
            db: store::connect(&config.store)?,
            deliveries_db: store::connect_steady(&config.store, DELIVERIES_CONNECTIONS)?,
            warehouse: warehouse::connect(&config.warehouse),
            queue: queue::Queue::connect(&queue).await?,
            bus: cache::Bus::connect(&config.redis.url, &config.redis.prefix)?,
            outbound: outbound::Client::new(outbound::Config {
                allow: config.outbound.allow.iter().map(|entry| entry.parse()).collect::<Result<_, _>>()?,
                total_timeout: config.webhooks.timeout,
                ..outbound::Config::default()
            })?,
            blobs: blobs::Blobs::connect(&config.blobs)?,
            tidy: config.tidy.clone(),
            master_key,
            schedule: config.webhooks.schedule.clone(),
            deactivate_after: config.webhooks.deactivate_after,
            purge: config.purge.clone(),
            forget_mail_after: config.mail.forget_after,
            forget_asked_after: config.mail.asked_for,
            mailer: Mailer::new(&config.mail)?,
            clock: Clock::system(),
            rng: Rng::system(),
        })))
    }
}
