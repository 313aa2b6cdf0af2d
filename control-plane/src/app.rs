//! The shared state of all handlers: stores, caches, limiters, secrets, settings, clock and random numbers.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::extract::FromRef;
use chrono::{DateTime, TimeDelta, Utc};
use contract::{DatedSignal, Signal};
use domain::addresses::Addresses;
use domain::encryption::MasterKey;
use domain::peppers::{self, Peppers};
use service::admission::{Admission, UNLIMITED};
use service::config::ExposeSecret;
use service::{Check, Clock, Rng, Rounds, Shutdown};
use uuid::Uuid;
use warehouse::Warehouse;
use web::{EdgeTrust, Problem};

use crate::admission::Calls;
use crate::automations::{Automations, HttpTargets, RequestRate, RunInserts, RunWaiters};
use crate::config::{Config, Deploys, Idempotency, Recipients, Subdomains, Trial, Upgrade, Webhooks};
use crate::credential_cache::CredentialCache;
use crate::deploys::DeployAdmission;
use crate::domain_checks::DomainChecks;
use crate::exports::Exports;
use crate::large_bodies::BodyBudget;
use crate::query_admission::QueryAdmission;
use crate::reference::Reference;
use crate::signin::state::SignIn;
use crate::uploads::Uploads;

/// The shared state of the control plane. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<AppInner>);

/// The fields of [`App`].
pub struct AppInner {
    /// Postgres.
    pub db: store::Db,
    /// ClickHouse.
    pub warehouse: Warehouse,
    /// Publishes changes to the edges.
    pub bus: cache::Bus<Signal>,
    /// Rate limits shared by all replicas.
    pub limiter: cache::Limiter,
    /// Looks up and caches credentials.
    pub credentials: CredentialCache,
    /// Builds public URLs.
    pub addresses: Addresses,
    /// The blob store.
    pub blobs: blobs::Blobs,
    /// Signs upload URLs.
    pub uploads: Uploads,
    /// Section `[deploys]`.
    pub deploys: Deploys,
    /// Admits the processing of zips.
    pub deploy_admission: DeployAdmission,
    /// Encrypts webhook URLs and secrets.
    pub master_key: MasterKey,
    /// Section `[trial]`.
    pub trial: Trial,
    /// Section `[subdomains]`.
    pub subdomains: Subdomains,
    /// Section `[upgrade]`.
    pub upgrade: Upgrade,
    /// The state of sign-in.
    pub signin: SignIn,
    /// Section `[webhooks]`.
    pub webhooks: Webhooks,
    /// Limits concurrent webhook tests by account.
    pub webhook_tests: Admission<Uuid>,
    /// Section `[automations]`.
    pub automations: Automations,
    /// Limits concurrent tests of automations by account.
    pub automation_tests: Admission<Uuid>,
    /// Looks up and caches automations with http triggers.
    pub http_targets: HttpTargets,
    /// Limits requests to http triggers by address.
    pub request_rate: RequestRate,
    /// Inserts the runs of http triggers in batches.
    pub run_inserts: RunInserts,
    /// Waits for the answers of runs.
    pub run_waiters: RunWaiters,
    /// Exemptions from the outbound guard.
    pub outbound_allow: Vec<outbound::Allow>,
    /// Section `[idempotency]`.
    pub idempotency: Idempotency,
    /// Admits exports of submissions.
    pub exports: Exports,
    /// Section `[recipients]`.
    pub recipients: Recipients,
    /// Checks of custom domains.
    pub domain_checks: DomainChecks,
    /// Admits analytics queries.
    pub query_admission: QueryAdmission,
    /// Admits the calls of the API.
    pub calls: Calls,
    /// Bounds large request bodies in memory.
    pub body_budget: BodyBudget,
    /// Authenticates the edge, so that its client IP header can be trusted.
    pub edge_trust: EdgeTrust,
    /// The reference of the API.
    pub(crate) reference: Reference,
    /// The templates and files of the console.
    pub(crate) console: Arc<console::Assets>,
    /// The current time.
    pub clock: Clock,
    /// Random numbers and ids.
    pub rng: Rng,
}

/// How long the relay leaves a new outbox row to the process that wrote it.
const RELAY_DELAY: TimeDelta = TimeDelta::seconds(1);
/// Interval at which Postgres is pinged, to report it.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(1);

impl Deref for App {
    type Target = AppInner;

    fn deref(&self) -> &AppInner {
        &self.0
    }
}

impl FromRef<App> for EdgeTrust {
    fn from_ref(app: &App) -> Self {
        app.edge_trust.clone()
    }
}

impl App {
    /// Builds the state from its settings. Connects to nothing yet: the service starts even if its stores are unavailable.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        Self::with_clock(config, Clock::remote())
    }

    /// As [`App::new`], with a clock that tests can move.
    pub fn with_clock(config: &Config, clock: Clock) -> anyhow::Result<Self> {
        let secrets = &config.secrets;
        let master_key = MasterKey::parse(secrets.master_key.expose_secret())?;
        let peppers = Peppers::parse(secrets.key_pepper.expose_secret())?;
        let limits_key = peppers::first_entry(secrets.key_pepper.expose_secret());
        let limits_key = limits_key.as_bytes();
        let db = store::connect(&config.store)?;
        let addresses = Addresses::new(&config.http.base_url, &config.http.sites_domain)?;
        config.blobs.check(config.http.edges)?;
        let bus = cache::Bus::connect(&config.redis, &config.redis.prefix)?;
        let export_db = store::ExportDb::connect(db.clone(), &config.store)?;
        Ok(Self(Arc::new(AppInner {
            automation_tests: Admission::new(
                UNLIMITED,
                config.automations.max_concurrent_tests,
                Duration::from_secs(1),
            ),
            automations: config.automations.clone(),
            http_targets: HttpTargets::new(db.clone(), master_key.clone()),
            request_rate: RequestRate::new(
                &config.redis,
                limits_key,
                config.automations.max_requests_per_minute,
            )?,
            run_inserts: RunInserts::new(db.clone(), bus.clone(), clock.clone()),
            run_waiters: RunWaiters::new(db.clone(), bus.clone()),
            credentials: CredentialCache::new(
                db.clone(),
                peppers,
                config.keys.cache_ttl,
                config.signin.idle_timeout(),
            ),
            db,
            warehouse: warehouse::connect(&config.warehouse)?,
            bus,
            limiter: cache::Limiter::connect_with_timeout(
                &config.redis,
                &config.redis.prefix,
                limits_key,
                config.trial.redis_timeout,
            )?,
            signin: SignIn::new(&config.signin, &addresses, &clock)?,
            domain_checks: DomainChecks::new(&config.domains, addresses.sites_domain())?,
            reference: Reference::new(addresses.base())?,
            console: Arc::new(console::Assets::new(addresses.base())?),
            addresses,
            blobs: blobs::Blobs::connect(&config.blobs)?,
            uploads: Uploads::new(secrets.edge_token.expose_secret(), config.uploads.url_ttl),
            deploys: config.deploys.clone(),
            deploy_admission: DeployAdmission::new(&config.deploys),
            master_key,
            trial: config.trial.clone(),
            subdomains: config.subdomains.clone(),
            upgrade: config.upgrade.clone(),
            webhooks: config.webhooks.clone(),
            webhook_tests: Admission::new(
                UNLIMITED,
                config.webhooks.max_concurrent_tests,
                Duration::from_secs(1),
            ),
            outbound_allow: config
                .outbound
                .allow
                .iter()
                .map(|entry| entry.parse())
                .collect::<Result<_, _>>()
                .context("outbound.allow")?,
            idempotency: config.idempotency.clone(),
            exports: Exports::new(&config.exports, export_db),
            recipients: config.recipients.clone(),
            query_admission: QueryAdmission::new(&config.analytics),
            calls: Calls::new(&config.api),
            body_budget: BodyBudget::new(&config.large_bodies),
            edge_trust: EdgeTrust::new(secrets.edge_token.expose_secret())?,
            clock,
            rng: Rng::system(),
        })))
    }

    /// Commits a transaction and publishes its changes to the edges: reliably through the outbox, and immediately over
    /// the bus, so that an edge serves the new page before the caller gets the response.
    ///
    /// # Errors
    /// The problem says whether the transaction may have been committed nevertheless.
    pub async fn commit(&self, mut tx: store::Tx, changes: Vec<contract::Change>) -> Result<(), Problem> {
        let now = self.clock.now();
        let signals: Vec<Signal> = changes.into_iter().map(Signal::Changed).collect();
        let mut rows = Vec::new();
        for signal in &signals {
            rows.push(store::outbox::insert_signal(&mut tx, signal, now, now + RELAY_DELAY).await?);
        }
        store::commit(tx).await.map_err(Problem::commit_failed)?;
        if !signals.is_empty() && self.publish(signals, now).await {
            tokio::spawn(delete_sent(self.db.clone(), rows));
        }
        Ok(())
    }

    /// Commits a transaction that has written its own outbox rows, and publishes these signals to speed them up.
    pub async fn commit_and_send(&self, tx: store::Tx, signals: Vec<Signal>) -> Result<(), Problem> {
        store::commit(tx).await.map_err(Problem::commit_failed)?;
        if !signals.is_empty() {
            self.publish(signals, self.clock.now()).await;
        }
        Ok(())
    }

    /// Returns whether the signals were published.
    async fn publish(&self, signals: Vec<Signal>, written_at: DateTime<Utc>) -> bool {
        let dated = |signal| DatedSignal { signal, written_at: Some(written_at) };
        let signals: Vec<_> = signals.into_iter().map(dated).collect();
        let published = self.bus.with_messages::<DatedSignal>().publish_for_request(&signals).await;
        if let Err(error) = &published {
            tracing::warn!(%error, signals = signals.len(), "failed to publish signals; the outbox will deliver them");
        }
        published.is_ok()
    }

    /// Pings Postgres and updates the readiness check, until `shutdown`.
    pub async fn watch_postgres(
        self,
        check: Check,
        rounds: Rounds,
        shutdown: Shutdown,
    ) -> anyhow::Result<()> {
        let mut ticks = tokio::time::interval(PING_INTERVAL);
        while shutdown.unless_requested(ticks.tick()).await.is_some() {
            match rounds.watch(store::ping(&self.db)).await {
                Ok(()) => check.ok(),
                Err(error) => check.failed(error.to_string()),
            }
        }
        Ok(())
    }
}

/// Deletes the outbox rows of published signals. After a failure they are published again, which is harmless.
async fn delete_sent(db: store::Db, rows: Vec<i64>) {
    let deleted = async {
        let mut conn = store::acquire(&db).await?;
        store::outbox::delete(&mut conn, &rows).await
    };
    if let Err(error) = deleted.await {
        tracing::debug!(%error, "failed to delete outbox rows; their signals will be published again");
    }
}
