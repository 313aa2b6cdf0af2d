//! The salts of visitor ids. Collectors share them through Postgres, fetch them a day ahead and destroy them on time.
//!
//! A salt has up to three copies: a row of an unlogged table, which decides; the memory of running collectors; and a sealed copy
//! in Redis. If the row is lost, one collector inserts it again from one of the others, and all get that one.
//! Decision: `collector/docs/0011-copies-of-salts.md`.

mod salt_id;
mod sealed_copies;
mod upkeep;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, NaiveDate, Utc};
use service::{Check, Clock, Rng};
use store::read_pool::{ReadError, ReadPool};
use store::retention_salts::{self, Period};
use store::salts::{self, Insertion, StoredSalt};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::metrics;
pub(super) use salt_id::Salt;
use salt_id::{SaltId, end_of_day_salt};
pub(crate) use sealed_copies::SealedCopies;

/// The salts in use, cached in memory. Clones share the cache.
#[derive(Clone)]
pub(crate) struct Salts {
    lookups: ReadPool,
    copies: SealedCopies,
    clock: Clock,
    rng: Rng,
    check: Check,
    cached: Arc<RwLock<HashMap<SaltId, CachedSalt>>>,
    /// A salt was cached that has no copy yet.
    uncopied: Arc<Notify>,
}

#[derive(Clone, Copy)]
struct CachedSalt {
    salt: Salt,
    ends_at: DateTime<Utc>,
    is_copied: bool,
}

impl Salts {
    pub(crate) fn new(lookups: ReadPool, copies: SealedCopies, clock: Clock, rng: Rng, check: Check) -> Self {
        Self { lookups, copies, clock, rng, check, cached: Arc::default(), uncopied: Arc::default() }
    }

    pub(super) async fn of_day(&self, day: NaiveDate) -> Result<Salt, ReadError> {
        let (id, ends_at) = (SaltId::Day(day), end_of_day_salt(day));
        if let Some(cached) = self.cached(id) {
            return Ok(cached.salt);
        }
        // Boxed: the future of a Postgres query is large and would enlarge the future of every event.
        let salt = Box::pin(self.load_day(day, None)).await?;
        self.cache(id, salt, ends_at);
        Ok(salt)
    }

    /// Returns `None` if the site was deleted.
    pub(super) async fn of_site(
        &self,
        site_id: Uuid,
        epoch: NaiveDate,
        ends_at: DateTime<Utc>,
    ) -> Result<Option<Salt>, ReadError> {
        let id = SaltId::Period(site_id, epoch);
        // Another end means that the owner changed the lifetime: the database must be updated.
        if let Some(cached) = self.cached(id).filter(|cached| cached.ends_at == ends_at) {
            return Ok(Some(cached.salt));
        }
        let salt = Box::pin(self.load_period(Period { site_id, epoch, ends_at }, None)).await?;
        if let Some(salt) = salt {
            self.cache(id, salt, ends_at);
        }
        Ok(salt)
    }

    /// Returns the salt of a day from Postgres. If there is none, inserts `known`, or else its copy, or else a new one.
    async fn load_day(&self, day: NaiveDate, known: Option<Salt>) -> Result<Salt, ReadError> {
        let find = async |conn: &mut store::Conn| salts::find_salt(conn, day).await;
        if let Some(salt) = self.lookups.query(find).await? {
            return Ok(salt);
        }
        let (salt, is_copy) = self.copy_or_new(SaltId::Day(day), known).await;
        let insert = async |conn: &mut store::Conn| salts::insert_salt(conn, day, &salt).await;
        let stored = self.lookups.query(insert).await?;
        count(stored, is_copy);
        Ok(stored.salt)
    }

    /// Like [`Self::load_day`], for a period of a site.
    async fn load_period(&self, period: Period, known: Option<Salt>) -> Result<Option<Salt>, ReadError> {
        let find = async |conn: &mut store::Conn| retention_salts::find_site_salt(conn, &period).await;
        if let Some(salt) = self.lookups.query(find).await? {
            return Ok(Some(salt));
        }
        let (salt, is_copy) = self.copy_or_new(SaltId::Period(period.site_id, period.epoch), known).await;
        let insert =
            async |conn: &mut store::Conn| retention_salts::insert_site_salt(conn, &period, &salt).await;
        let stored = self.lookups.query(insert).await?;
        Ok(stored.map(|stored| {
            count(stored, is_copy);
            stored.salt
        }))
    }

    /// Returns a salt, and whether it is a copy of one that was made before.
    async fn copy_or_new(&self, id: SaltId, known: Option<Salt>) -> (Salt, bool) {
        let copy = match known {
            Some(salt) => Some(salt),
            None => self.copies.find(id).await,
        };
        copy.map_or_else(|| (self.rng.bytes(), false), |salt| (salt, true))
    }

    fn cached(&self, id: SaltId) -> Option<CachedSalt> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner).get(&id).copied()
    }

    fn cache(&self, id: SaltId, salt: Salt, ends_at: DateTime<Utc>) {
        let cached = CachedSalt { salt, ends_at, is_copied: false };
        self.cached.write().unwrap_or_else(PoisonError::into_inner).insert(id, cached);
        self.uncopied.notify_one();
    }
}

/// Counts a salt that was lost in Postgres. The first salt of a day or period is no loss.
fn count(stored: StoredSalt, is_copy: bool) {
    match (stored.insertion, is_copy) {
        (Insertion::None, _) | (Insertion::First, false) => {}
        (_, true) => metrics::SALTS_RESTORED.add(1, &[]),
        (Insertion::AfterLoss, false) => {
            tracing::error!("a salt of visitor ids was lost: visitors of its day or period count anew");
            metrics::SALTS_LOST.add(1, &[]);
        }
    }
}
