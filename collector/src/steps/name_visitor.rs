//! Gives the visitor an id that holds for a day and one site, from salts that all collectors share.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::{Days, NaiveDate};
use domain::tracking::Dropped;
use domain::visitors::{SALT_BYTES, visitor_id};
use service::{Check, Clock, Rng, Shutdown};
use store::Db;
use store::sites::SiteOwner;
use tokio::time::Instant;

use crate::pipeline::Arrival;

type Salt = [u8; SALT_BYTES];

/// How often salts are looked after, and how soon again after a failure.
const LOOK_AFTER_EVERY: Duration = Duration::from_secs(600);
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Names visitors; knows the salts in use. Clones share them.
#[derive(Clone)]
pub(crate) struct NameVisitor {
    db: Db,
    clock: Clock,
    rng: Rng,
    check: Check,
    salts: Arc<RwLock<BTreeMap<NaiveDate, Salt>>>,
}

impl NameVisitor {
    pub(crate) fn new(db: Db, clock: Clock, rng: Rng, check: Check) -> Self {
        Self { db, clock, rng, check, salts: Arc::default() }
    }

    pub(crate) async fn step(&self, arrival: &Arrival, owner: SiteOwner) -> Result<u64, Dropped> {
        let salt = self.salt(arrival.at.date_naive()).await.map_err(|error| {
            tracing::warn!(%error, "no salt for the day of an event: it is dropped");
            Dropped::Unavailable
        })?;
        Ok(visitor_id(&salt, owner.site_id, arrival.ip, &arrival.user_agent))
    }

    async fn salt(&self, day: NaiveDate) -> Result<Salt, store::Error> {
        let known = self.salts.read().unwrap_or_else(PoisonError::into_inner).get(&day).copied();
        if let Some(salt) = known {
            return Ok(salt);
        }
        let mut conn = store::acquire(&self.db).await?;
        let salt = store::salts::get_salt(&mut conn, day, &self.rng.bytes()).await?;
        self.salts.write().unwrap_or_else(PoisonError::into_inner).insert(day, salt);
        Ok(salt)
    }

    /// Fetches tomorrow's salt ahead, so that midnight needs no database, and destroys those that have served.
    pub(crate) async fn look_after_salts(self, shutdown: Shutdown) -> anyhow::Result<()> {
        while !shutdown.is_requested() {
            let pause = match self.rotate().await {
                Ok(()) => {
                    self.check.ok();
                    LOOK_AFTER_EVERY
                }
                Err(error) => {
                    tracing::warn!(%error, "salts can't be looked after");
                    TRY_AGAIN_AFTER
                }
            };
            // The pause is the point: this is a clock's job.
            shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + pause)).await;
        }
        Ok(())
    }

    async fn rotate(&self) -> Result<(), store::Error> {
        let today = self.clock.now().date_naive();
        // Yesterday's stays: a session may have begun before midnight.
        let oldest = today.checked_sub_days(Days::new(1)).unwrap_or(today);
        self.salts.write().unwrap_or_else(PoisonError::into_inner).retain(|day, _| *day >= oldest);
        let mut conn = store::acquire(&self.db).await?;
        store::salts::delete_salts_before(&mut conn, oldest).await?;
        drop(conn);
        self.salt(today).await?;
        self.salt(today.checked_add_days(Days::new(1)).unwrap_or(today)).await?;
        Ok(())
    }
}
