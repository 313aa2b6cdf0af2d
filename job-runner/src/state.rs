//! The state that every job receives: stores, clients and settings.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use contract::{Job, Signal};
use domain::addresses::Addresses;
use domain::encryption::MasterKey;
use service::config::ExposeSecret;
use service::{Clock, Rng};

use crate::automations::{EntryWriter, FetchClient};
use crate::config::{Config, GarbageCollection, Purge};
use crate::domain_checks::settings::DomainChecks;
use crate::mail::Mailer;
use crate::own_addresses::OwnAddresses;

/// One connection for claims, one for completions.
const DELIVERIES_CONNECTIONS: u32 = 2;
/// One connection each for claims, completions, leases, submissions that start runs, and schedules.
const AUTOMATIONS_CONNECTIONS: u32 = 5;
/// Their statements take milliseconds. A dead connection must not delay deliveries for longer than this.
const DELIVERIES_STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// One connection for each task that deletes rows or bytes in bulk.
const MAINTENANCE_CONNECTIONS: u32 = 5;

/// The job-runner's state. Cheap to clone.
#[derive(Clone)]
pub(crate) struct JobState(Arc<StateInner>);

pub(crate) struct StateInner {
    pub(crate) db: store::Db,
    /// A separate pool for claiming and completing deliveries.
    pub(crate) deliveries_db: store::Db,
    /// A separate pool for claiming, ending and starting runs of automations.
    pub(crate) automations_db: store::Db,
    /// A separate pool for deletions in bulk, with longer time limits.
    pub(crate) maintenance_db: store::Db,
    pub(crate) warehouse: warehouse::Warehouse,
    pub(crate) queue: queue::Queue<Job>,
    pub(crate) bus: cache::Bus<Signal>,
    pub(crate) outbound: outbound::Client,
    pub(crate) own_addresses: OwnAddresses,
    /// The client of `fetch` steps.
    pub(crate) fetch_client: FetchClient,
    /// Stores the entries of `create_entry` steps.
    pub(crate) entry_writer: EntryWriter,
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
    pub(crate) domain_checks: DomainChecks,
    /// URL of the base host, without a slash at its end.
    pub(crate) base_url: String,
    /// The base host's name.
    pub(crate) base_host: String,
    /// `None` if no SMTP server is set.
    pub(crate) mailer: Option<Mailer>,
    /// Follows Postgres' clock.
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
        let master_key = MasterKey::parse(config.secrets.master_key.expose_secret())
            .context("it needs the control-plane's keys")?;
        anyhow::ensure!(
            !config.webhooks.retry_schedule.is_empty(),
            "webhooks.retry_schedule needs at least one attempt"
        );
        config.blobs.check(config.http.edges)?;
        let queue = queue::Config {
            max_concurrent: config.queue.max_concurrent,
            max_jobs: config.queue.max_jobs,
            lease_ttl: config.queue.lease_ttl,
            ..queue::Config::new(&config.redis, format!("{}:jobs", config.redis.prefix))
        };
        let deliveries = store::Config {
            statement_timeout: config.store.statement_timeout.min(DELIVERIES_STATEMENT_TIMEOUT),
            ..config.store.clone()
        };
        let maintenance = store::Config {
            max_connections: MAINTENANCE_CONNECTIONS,
            statement_timeout: config.purge.statement_timeout,
            idle_in_transaction_timeout: config.purge.idle_in_transaction_timeout,
            ..config.store.clone()
        };
        let allow: Vec<outbound::Allow> =
            config.outbound.allow.iter().map(|entry| entry.parse()).collect::<Result<_, _>>()?;
        let addresses = Addresses::new(&config.http.base_url, &config.http.sites_domain)?;
        let db = store::connect(&config.store)?;
        let domain_checks = DomainChecks::new(&config.domains, addresses.sites_domain())?;
        let base_host = addresses.base_host().to_owned();
        let clock = Clock::remote();
        let own_addresses = OwnAddresses::new(addresses, db.clone());
        Ok(Self(Arc::new(StateInner {
            db: db.clone(),
            deliveries_db: store::connect_generic_plans(&deliveries, DELIVERIES_CONNECTIONS)?,
            automations_db: store::connect_generic_plans(&deliveries, AUTOMATIONS_CONNECTIONS)?,
            maintenance_db: store::connect(&maintenance)?,
            warehouse: warehouse::connect(&config.warehouse)?,
            queue: queue::Queue::connect(&queue).await?,
            bus: cache::Bus::connect(&config.redis, &config.redis.prefix)?,
            fetch_client: FetchClient::new(allow.clone(), &config.http.base_url)?,
            entry_writer: EntryWriter::new(db.clone(), clock.clone()),
            outbound: outbound::Client::new(outbound::Config {
                allow,
                total_timeout: config.webhooks.timeout,
                ..outbound::Config::default()
            })?,
            own_addresses,
            blobs: blobs::Blobs::connect(&config.blobs)?,
            garbage_collection: config.garbage_collection.clone(),
            master_key,
            retry_schedule: config.webhooks.retry_schedule.clone(),
            deactivate_after: config.webhooks.deactivate_after,
            purge: config.purge.clone(),
            mail_ttl: config.mail.ttl,
            confirmation_ttl: config.mail.confirmation_ttl,
            domain_checks,
            base_url: config.http.base_url.trim_end_matches('/').to_owned(),
            base_host,
            mailer: Mailer::new(&config.mail)?,
            clock,
            rng: Rng::system(),
        })))
    }
}
