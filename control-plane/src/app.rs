//! What every handler is handed: the stores, the addresses, the secrets, time and chance.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::extract::FromRef;
use chrono::TimeDelta;
use contract::Signal;
use domain::addresses::Addresses;
use domain::keys::Pepper;
use domain::sealing::MasterKey;
use service::config::ExposeSecret;
use service::{Check, Clock, Rng, Shutdown};
use warehouse::Warehouse;
use web::{EdgeTrust, Problem};

use crate::body_budget::BodyBudget;
use crate::config::{Config, Deploys, Idempotency, Recipients, Subdomains, Trial, Upgrade, Webhooks};
use crate::credential_cache::CredentialCache;
use crate::exports::Exports;
use crate::query_admission::QueryAdmission;
use crate::signin::state::SignIn;
use crate::uploads::Uploads;

/// The control plane's parts. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<AppInner>);

/// See [`App`].
pub struct AppInner {
    /// Postgres.
    pub db: store::Db,
    /// ClickHouse.
    pub warehouse: Warehouse,
    /// Tells edges at once what has changed.
    pub bus: cache::Bus<Signal>,
    /// Counts over all replicas.
    pub limiter: cache::Limiter,
    /// Who calls, by key.
    pub credentials: CredentialCache,
    /// How addresses are written.
    pub addresses: Addresses,
    /// Where bytes of users are.
    pub blobs: blobs::Blobs,
    /// How upload addresses are given out.
    pub uploads: Uploads,
    /// How sites are made from zips.
    pub deploys: Deploys,
    /// Seals webhook addresses and secrets.
    pub master_key: MasterKey,
    /// How trials are made.
    pub trial: Trial,
    /// How subdomains are renamed.
    pub subdomains: Subdomains,
    /// How plans are changed.
    pub upgrade: Upgrade,
    /// How people sign in.
    pub signin: SignIn,
    /// How webhooks are tested, and what of them is kept.
    pub webhooks: Webhooks,
    /// What the outgoing guard lets through.
    pub outbound_allow: Vec<outbound::Allow>,
    /// How calls are made once.
    pub idempotency: Idempotency,
    /// How submissions are exported.
    pub exports: Exports,
    /// Whom forms may have asked whether they want mails.
    pub recipients: Recipients,
    /// The turns that questions to the warehouse take.
    pub query_admission: QueryAdmission,
    /// Bounds large request bodies in memory.
    pub body_budget: BodyBudget,
    /// Whom to believe about a caller's address.
    pub edge_trust: EdgeTrust,
    /// Now.
    pub clock: Clock,
    /// Chance.
    pub rng: Rng,
}

/// How long the relay leaves a signal to whoever wrote it.
const RELAY_DELAY: TimeDelta = TimeDelta::seconds(1);

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
    /// Puts the parts together. Nothing is connected to yet: the service starts while its stores are away.
    ///
    /// # Errors
    /// A setting can't be used.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        Self::with_clock(config, Clock::system())
    }

    /// As [`App::new`], by a clock that may be moved.
    ///
    /// # Errors
    /// As there.
    pub fn with_clock(config: &Config, clock: Clock) -> anyhow::Result<Self> {
        let secrets = &config.secrets;
        let master_key = MasterKey::from_hex(secrets.master_key.expose_secret()).context(
            "secrets.master_key must be 64 hexadecimal digits; make one with `openssl rand -hex 32`",
        )?;
        let pepper = Pepper::new(secrets.key_pepper.expose_secret().as_bytes())
            .context("secrets.key_pepper must have at least 16 characters")?;
        let db = store::connect(&config.store)?;
        let addresses = Addresses::new(&config.http.base_url, &config.http.sites_domain)?;
        Ok(Self(Arc::new(AppInner {
            credentials: CredentialCache::new(
                db.clone(),
                pepper,
                config.keys.cache,
                config.signin.idle_timeout(),
            ),
            db,
            warehouse: warehouse::connect(&config.warehouse),
            bus: cache::Bus::connect(&config.redis.url, &config.redis.prefix)?,
            limiter: cache::Limiter::connect_with_timeout(
                &config.redis.url,
                &config.redis.prefix,
                secrets.key_pepper.expose_secret().as_bytes(),
                config.trial.patience,
            )?,
            signin: SignIn::new(&config.signin, &addresses, &clock)?,
            addresses,
            blobs: blobs::Blobs::connect(&config.blobs)?,
            uploads: Uploads::new(secrets.edge_token.expose_secret(), config.uploads.expire_after),
            deploys: config.deploys.clone(),
            master_key,
            trial: config.trial.clone(),
            subdomains: config.subdomains.clone(),
            upgrade: config.upgrade.clone(),
            webhooks: config.webhooks.clone(),
            outbound_allow: config
                .outbound
                .allow
                .iter()
                .map(|entry| entry.parse())
                .collect::<Result<_, _>>()
                .context("outbound.allow")?,
            idempotency: config.idempotency.clone(),
            exports: Exports::new(&config.exports),
            recipients: config.recipients.clone(),
            query_admission: QueryAdmission::new(&config.analytics),
            body_budget: BodyBudget::new(&config.large_bodies),
            edge_trust: EdgeTrust::new(secrets.edge_token.expose_secret()),
            clock,
            rng: Rng::system(),
        })))
    }

    /// Commits a transaction and tells what it changed: for certain through the outbox, and at once over the
    /// bus, so that an edge serves the new page before the caller has our answer.
    ///
    /// # Errors
    /// The transaction could not be committed; the problem says whether it may have been all the same.
    pub async fn commit(&self, mut tx: store::Tx, changes: Vec<contract::Change>) -> Result<(), Problem> {
        let now = self.clock.now();
        let signals: Vec<Signal> = changes.into_iter().map(Signal::Changed).collect();
        let mut rows = Vec::new();
        for signal in &signals {
            rows.push(store::outbox::insert_signal(&mut tx, signal, now, now + RELAY_DELAY).await?);
        }
        store::commit(tx).await.map_err(Problem::outcome_unknown)?;
        let mut sent = Vec::new();
        for (signal, row) in signals.iter().zip(rows) {
            match self.bus.publish(signal).await {
                Ok(()) => sent.push(row),
                Err(error) => tracing::warn!(%error, "a signal is left to the outbox"),
            }
        }
        if !sent.is_empty() {
            tokio::spawn(delete_sent(self.db.clone(), sent));
        }
        Ok(())
    }

    /// Commits a transaction that has written what follows from it into the outbox, and sends these signals so that it
    /// follows at once.
    ///
    /// # Errors
    /// As [`App::commit`].
    pub async fn commit_and_send(&self, tx: store::Tx, signals: Vec<Signal>) -> Result<(), Problem> {
        store::commit(tx).await.map_err(Problem::outcome_unknown)?;
        for signal in &signals {
            if let Err(error) = self.bus.publish(signal).await {
                tracing::warn!(%error, "a signal is left to the outbox");
            }
        }
        Ok(())
    }

    /// Keeps the readiness check up to date.
    ///
    /// # Errors
    /// None: it ends with `shutdown`.
    pub async fn watch_postgres(self, check: Check, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut every = tokio::time::interval(Duration::from_secs(1));
        while shutdown.unless_requested(every.tick()).await.is_some() {
            match store::ping(&self.db).await {
                Ok(()) => check.ok(),
                Err(error) => check.failed(error.to_string()),
            }
        }
        Ok(())
    }
}

/// Deletes outbox rows whose signals were sent. Should it fail, they are sent once more, which does no harm.
async fn delete_sent(db: store::Db, rows: Vec<i64>) {
    let deleted = async {
        let mut conn = store::acquire(&db).await?;
        store::outbox::delete(&mut conn, &rows).await
    };
    if let Err(error) = deleted.await {
        tracing::debug!(%error, "sent signals will be sent again");
    }
}
