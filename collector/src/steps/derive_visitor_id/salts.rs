//! The salts of visitor ids. Collectors share them through Postgres, fetch them a day ahead and destroy them on time.

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

const ROTATE_INTERVAL: Duration = Duration::from_secs(600);
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The salts in use, cached in memory. Clones share the cache.
#[derive(Clone)]
pub(crate) struct Salts {
    lookups: ReadPool,
    clock: Clock,
    rng: Rng,
    check: Check,
    by_day: Arc<RwLock<BTreeMap<NaiveDate, Salt>>>,
    by_site: Arc<RwLock<HashMap<(Uuid, NaiveDate), SiteSalt>>>,
}

#[derive(Clone, Copy)]
struct SiteSalt {
    salt: Salt,
    ends_at: DateTime<Utc>,
}

impl Salts {
    pub(crate) fn new(lookups: ReadPool, clock: Clock, rng: Rng, check: Check) -> Self {
        Self { lookups, clock, rng, check, by_day: Arc::default(), by_site: Arc::default() }
    }

    pub(super) async fn of_day(&self, day: NaiveDate) -> Result<Salt, ReadError> {
        let cached = self.by_day.read().unwrap_or_else(PoisonError::into_inner).get(&day).copied();
        if let Some(salt) = cached {
            return Ok(salt);
        }
        let new_salt = self.rng.bytes();
        let get = async |conn: &mut store::Conn| store::salts::get_salt(conn, day, &new_salt).await;
        // Boxed: the future of a Postgres query is large and would enlarge the future of every event.
        let salt = Box::pin(self.lookups.query(get)).await?;
        self.by_day.write().unwrap_or_else(PoisonError::into_inner).insert(day, salt);
        Ok(salt)
    }

    /// Returns `None` if the site was deleted.
    pub(super) async fn of_site(
        &self,
        site_id: Uuid,
        epoch: NaiveDate,
        ends_at: DateTime<Utc>,
    ) -> Result<Option<Salt>, ReadError> {
        let key = (site_id, epoch);
        let cached = self.by_site.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        // Another end means that the owner changed the lifetime: the database must be updated.
        if let Some(cached) = cached.filter(|cached| cached.ends_at == ends_at) {
            return Ok(Some(cached.salt));
        }
        let new_salt = NewSalt { epoch, ends_at, salt: self.rng.bytes() };
        let get = async |conn: &mut store::Conn| {
            store::retention_salts::get_site_salt(conn, site_id, &new_salt).await
        };
        let salt = Box::pin(self.lookups.query(get)).await?;
        if let Some(salt) = salt {
            let cached = SiteSalt { salt, ends_at };
            self.by_site.write().unwrap_or_else(PoisonError::into_inner).insert(key, cached);
        }
        Ok(salt)
    }

    pub(super) async fn rotate_until(self, shutdown: Shutdown) -> anyhow::Result<()> {
        while !shutdown.is_requested() {
            let pause = match self.rotate().await {
                Ok(()) => {
                    self.check.ok();
                    ROTATE_INTERVAL
                }
                Err(error) => {
                    tracing::warn!(%error, "rotating the salts failed");
                    RETRY_AFTER
                }
            };
            shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + pause)).await;
        }
        Ok(())
    }

    /// Destroys expired salts, and fetches today's and tomorrow's, so that midnight needs no query.
    async fn rotate(&self) -> Result<(), ReadError> {
        let now = self.clock.now();
        let today = now.date_naive();
        // Yesterday's salt stays: a visit may have begun before midnight.
        let oldest = today.checked_sub_days(Days::new(1)).unwrap_or(today);
        self.by_day.write().unwrap_or_else(PoisonError::into_inner).retain(|day, _| *day >= oldest);
        let in_use = |_: &_, salt: &mut SiteSalt| salt.ends_at > now;
        self.by_site.write().unwrap_or_else(PoisonError::into_inner).retain(in_use);
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
