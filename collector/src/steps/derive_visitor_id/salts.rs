//! The salts behind visitors' ids, shared through Postgres, fetched ahead, and destroyed on time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, Days, NaiveDate, Utc};
use domain::visitors::SALT_BYTES;
use service::{Check, Clock, Rng, Shutdown};
use store::read_pool::{ReadError, ReadPool};
use store::retention_salts::NewSalt;
use tokio::time::Instant;
use uuid::Uuid;

pub(super) type Salt = [u8; SALT_BYTES];

/// How often salts are looked after, and how soon again after a failure.
const LOOK_AFTER_EVERY: Duration = Duration::from_secs(600);
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The salts in use. Clones share them.
#[derive(Clone)]
pub(crate) struct Salts {
    lookups: ReadPool,
    clock: Clock,
    rng: Rng,
    check: Check,
    of_days: Arc<RwLock<BTreeMap<NaiveDate, Salt>>>,
    of_sites: Arc<RwLock<HashMap<(Uuid, NaiveDate), SiteSalt>>>,
}

#[derive(Clone, Copy)]
struct SiteSalt {
    salt: Salt,
    ends_at: DateTime<Utc>,
}

impl Salts {
    pub(crate) fn new(lookups: ReadPool, clock: Clock, rng: Rng, check: Check) -> Self {
        Self { lookups, clock, rng, check, of_days: Arc::default(), of_sites: Arc::default() }
    }

    pub(super) async fn of_day(&self, day: NaiveDate) -> Result<Salt, ReadError> {
        let known = self.of_days.read().unwrap_or_else(PoisonError::into_inner).get(&day).copied();
        if let Some(salt) = known {
            return Ok(salt);
        }
        let fresh = self.rng.bytes();
        let get = async |conn: &mut store::Conn| store::salts::get_salt(conn, day, &fresh).await;
        // Apart, as what waits for Postgres is large, and every event would carry its place along.
        let salt = Box::pin(self.lookups.query(get)).await?;
        self.of_days.write().unwrap_or_else(PoisonError::into_inner).insert(day, salt);
        Ok(salt)
    }

    /// None if the site is gone.
    pub(super) async fn of_site(
        &self,
        site_id: Uuid,
        epoch: NaiveDate,
        ends_at: DateTime<Utc>,
    ) -> Result<Option<Salt>, ReadError> {
        let key = (site_id, epoch);
        let known = self.of_sites.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        // Another end means that the owner chose another lifetime: the database must hear of it.
        if let Some(known) = known.filter(|known| known.ends_at == ends_at) {
            return Ok(Some(known.salt));
        }
        let fresh = NewSalt { epoch, ends_at, salt: self.rng.bytes() };
        let get =
            async |conn: &mut store::Conn| store::retention_salts::get_site_salt(conn, site_id, &fresh).await;
        let salt = Box::pin(self.lookups.query(get)).await?;
        if let Some(salt) = salt {
            let known = SiteSalt { salt, ends_at };
            self.of_sites.write().unwrap_or_else(PoisonError::into_inner).insert(key, known);
        }
        Ok(salt)
    }

    pub(super) async fn look_after(self, shutdown: Shutdown) -> anyhow::Result<()> {
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

    async fn rotate(&self) -> Result<(), ReadError> {
        let now = self.clock.now();
        let today = now.date_naive();
        // Yesterday's stays: a session may have begun before midnight.
        let oldest = today.checked_sub_days(Days::new(1)).unwrap_or(today);
        self.of_days.write().unwrap_or_else(PoisonError::into_inner).retain(|day, _| *day >= oldest);
        let in_use = |_: &_, salt: &mut SiteSalt| salt.ends_at > now;
        self.of_sites.write().unwrap_or_else(PoisonError::into_inner).retain(in_use);
        let delete = async |conn: &mut store::Conn| {
            store::salts::delete_salts_before(conn, oldest).await?;
            store::retention_salts::delete_ended_salts(conn, now).await
        };
        self.lookups.query(delete).await?;
        self.of_day(today).await?;
        self.of_day(today.checked_add_days(Days::new(1)).unwrap_or(today)).await?;
        Ok(())
    }
}
