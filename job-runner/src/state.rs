//! The state that every job receives: stores, clients and settings.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use contract::{Job, Signal};
use domain::encryption::MasterKey;
use service::config::ExposeSecret;
use service::{Clock, Rng};

use crate::config::{Config, GarbageCollection, Purge};
use crate::mail::Mailer;

/// One connection for claims, one for completions.
const DELIVERIES_CONNECTIONS: u32 = 2;

/// The job-runner's state. Cheap to clone.
#[derive(Clone)]
pub(crate) struct JobState(Arc<StateInner>);

pub(crate) struct StateInner {
    pub(crate) db: store::Db,
    /// A separate pool for claiming and completing deliveries.
    pub(crate) deliveries_db: store::Db,
    pub(crate) warehouse: warehouse::Warehouse,
    pub(crate) queue: queue::Queue<Job>,
    pub(crate) bus: cache::Bus<Signal>,
    pub(crate) outbound: outbound::Client,
    pub(crate) blobs: blobs::Blobs,
    pub(crate) garbage_collection: GarbageCollection,
    /// Decrypts webhook URLs and secrets.
    pub(crate) master_key: MasterKey,
    /// Delays before each attempt of a delivery.
    pub(crate) retry_schedule: Vec<Duration>,
    pub(crate) deactivate_after: Duration,
    pub(crate) purge: Purge,
    pub(crate) mail_ttl: Duration,
    pub(crate) confirmation_ttl: Duration,
    /// `None` if no SMTP server is set.
    pub(crate) mailer: Option<Mailer>,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
}

impl Deref for JobState {
    type Target = StateInner;

    fn deref(&self) -> &StateInner {
        &self.0
    }
}

impl JobState {
    /// Connects to all stores. Redis and Postgres may be unavailable; an error means an invalid setting.
    pub(crate) async fn new(config: &Config) -> anyhow::Result<Self> {
        let master_key = MasterKey::from_hex(config.secrets.master_key.expose_secret())
            .context("secrets.master_key must be 64 hexadecimal digits, the same as the control-plane's")?;
        anyhow::ensure!(
            !config.webhooks.retry_schedule.is_empty(),
            "webhooks.retry_schedule needs at least one attempt"
        );
        let queue = queue::Config {
            max_concurrent: config.queue.max_concurrent,
            max_jobs: config.queue.max_jobs,
            lease_ttl: config.queue.lease_ttl,
            ..queue::Config::new(&config.redis.url, format!("{}:jobs", config.redis.prefix))
        };
        Ok(Self(Arc::new(StateInner {
            db: store::connect(&config.store)?,
            deliveries_db: store::connect_generic_plans(&config.store, DELIVERIES_CONNECTIONS)?,
            warehouse: warehouse::connect(&config.warehouse),
            queue: queue::Queue::connect(&queue).await?,
            bus: cache::Bus::connect(&config.redis.url, &config.redis.prefix)?,
            outbound: outbound::Client::new(outbound::Config {
                allow: config.outbound.allow.iter().map(|entry| entry.parse()).collect::<Result<_, _>>()?,
                total_timeout: config.webhooks.timeout,
                ..outbound::Config::default()
            })?,
            blobs: blobs::Blobs::connect(&config.blobs)?,
            garbage_collection: config.garbage_collection.clone(),
            master_key,
            retry_schedule: config.webhooks.retry_schedule.clone(),
            deactivate_after: config.webhooks.deactivate_after,
            purge: config.purge.clone(),
            mail_ttl: config.mail.ttl,
            confirmation_ttl: config.mail.confirmation_ttl,
            mailer: Mailer::new(&config.mail)?,
            clock: Clock::system(),
            rng: Rng::system(),
        })))
    }
}
