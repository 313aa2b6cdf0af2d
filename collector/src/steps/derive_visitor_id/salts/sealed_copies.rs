//! Copies of the salts in Redis, sealed with the master key. They expire with the salts. Postgres keeps the salts in unlogged
//! tables, which a crash, a failover and a restore empty.

use cache::{ExpiringValue, ExpiringValues};
use chrono::{DateTime, NaiveDate, Utc};
use domain::encryption::MasterKey;
use service::Rng;

use super::salt_id::{Salt, SaltId};

/// The copies. Without a master key there are none.
#[derive(Clone)]
pub(crate) struct SealedCopies(Option<(ExpiringValues, MasterKey)>);

impl SealedCopies {
    pub(crate) fn new(redis: ExpiringValues, master_key: Option<MasterKey>) -> Self {
        Self(master_key.map(|key| (redis, key)))
    }

    /// Returns the copy of a salt. `None` if there is none, if no configured key opens it, or if Redis is unavailable.
    pub(super) async fn find(&self, id: SaltId) -> Option<Salt> {
        let (redis, master_key) = self.0.as_ref()?;
        let copy = match redis.get(&id.copy_key()).await {
            Ok(copy) => copy?,
            Err(error) => {
                tracing::warn!(%error, "looking for the copy of a salt failed");
                return None;
            }
        };
        let (first_day, sealed) = copy.split_at_checked(FIRST_DAY_BYTES)?;
        if first_day != first_day_bytes(id.first_day()) {
            // That of another period of the site.
            return None;
        }
        match master_key.open(&id.purpose(), sealed) {
            Ok(salt) => salt.try_into().ok(),
            Err(error) => {
                tracing::warn!(%error, "the copy of a salt can't be opened");
                None
            }
        }
    }

    /// Stores copies, sealed with the first key. They expire at the given times.
    pub(super) async fn store(
        &self,
        salts: &[(SaltId, Salt, DateTime<Utc>)],
        rng: &Rng,
    ) -> Result<(), cache::Error> {
        let Some((redis, master_key)) = &self.0 else { return Ok(()) };
        let sealed = salts.iter().map(|(id, salt, expires_at)| {
            let sealed = master_key.seal(&id.purpose(), rng.bytes(), salt);
            let value = [first_day_bytes(id.first_day()).as_slice(), &sealed].concat();
            ExpiringValue { key: id.copy_key(), value, expires_at: *expires_at }
        });
        redis.put_all(&sealed.collect::<Vec<_>>()).await
    }
}

/// The first day of a salt precedes the sealed bytes.
const FIRST_DAY_BYTES: usize = 4;

fn first_day_bytes(day: NaiveDate) -> [u8; FIRST_DAY_BYTES] {
    chrono::Datelike::num_days_from_ce(&day).to_be_bytes()
}
