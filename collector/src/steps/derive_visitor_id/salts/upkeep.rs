//! The background tasks of the salts: rotation, detection of lost rows, and copies.

use std::sync::PoisonError;
use std::time::Duration;

use chrono::{DateTime, Days, Utc};
use service::Shutdown;
use store::read_pool::ReadError;
use store::retention_salts::{self, Period};
use store::salts;
use tokio::time::Instant;

use super::Salts;
use super::salt_id::{Salt, SaltId};

const ROTATE_INTERVAL: Duration = Duration::from_secs(600);
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// How often the row of today's salt is looked for. A crash of Postgres empties both tables at once, so it stands for all rows.
const LOSS_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How often all copies are written again, because Redis may have been emptied, or the master key rotated.
const COPY_INTERVAL: Duration = Duration::from_secs(60);

impl Salts {
    pub(in super::super) async fn maintain_until(self, shutdown: Shutdown) -> anyhow::Result<()> {
        tokio::join!(
            self.rotate_until(&shutdown),
            self.restore_rows_until(&shutdown),
            self.copy_until(&shutdown)
        );
        Ok(())
    }

    async fn rotate_until(&self, shutdown: &Shutdown) {
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
    }

    /// Destroys expired salts, and fetches today's and tomorrow's, so that midnight needs no query.
    async fn rotate(&self) -> Result<(), ReadError> {
        let now = self.clock.now();
        let today = now.date_naive();
        // Yesterday's salt stays: a visit may have begun before midnight.
        let oldest = today.checked_sub_days(Days::new(1)).unwrap_or(today);
        self.cached.write().unwrap_or_else(PoisonError::into_inner).retain(|_, salt| salt.ends_at > now);
        let delete = async |conn: &mut store::Conn| {
            salts::delete_salts_before(conn, oldest).await?;
            retention_salts::delete_ended_salts(conn, now).await
        };
        self.lookups.query(delete).await?;
        self.of_day(today).await?;
        self.of_day(today.checked_add_days(Days::new(1)).unwrap_or(today)).await?;
        Ok(())
    }

    async fn restore_rows_until(&self, shutdown: &Shutdown) {
        while !shutdown.is_requested() {
            if let Err(error) = self.restore_rows().await {
                tracing::debug!(%error, "looking for lost salts failed");
            }
            let pause = tokio::time::sleep_until(Instant::now() + LOSS_CHECK_INTERVAL);
            shutdown.unless_requested(pause).await;
        }
    }

    /// Inserts the salts of this process's memory if the tables were emptied, and adopts those that another collector inserted.
    async fn restore_rows(&self) -> Result<(), ReadError> {
        let today = self.clock.now().date_naive();
        let Some(cached) = self.cached(SaltId::Day(today)) else { return Ok(()) };
        let find = async |conn: &mut store::Conn| salts::find_salt(conn, today).await;
        if self.lookups.query(find).await? == Some(cached.salt) {
            return Ok(());
        }
        tracing::warn!("Postgres has lost the salts of visitor ids, as after a crash: inserting them again");
        let all = self.copyable(|_| true);
        // Today's row comes last: until it is there, the next round begins again.
        let (of_today, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(id, ..)| *id == SaltId::Day(today));
        for (id, salt, ends_at) in others.into_iter().chain(of_today) {
            let stored = match id {
                SaltId::Day(day) => Some(self.load_day(day, Some(salt)).await?),
                SaltId::Period(site_id, epoch) => {
                    self.load_period(Period { site_id, epoch, ends_at }, Some(salt)).await?
                }
            };
            match stored {
                Some(stored) if stored != salt => self.cache(id, stored, ends_at),
                Some(_) => {}
                None => drop(self.cached.write().unwrap_or_else(PoisonError::into_inner).remove(&id)),
            }
        }
        Ok(())
    }

    async fn copy_until(&self, shutdown: &Shutdown) {
        let mut all_at = Instant::now() + COPY_INTERVAL;
        let mut is_failing = false;
        while !shutdown.is_requested() {
            let all = Instant::now() >= all_at;
            let salts = self.copyable(|is_copied| all || !is_copied);
            let mut pause_until = all_at;
            match self.copies.store(&salts, &self.rng).await {
                Ok(()) => {
                    self.record_copies(&salts);
                    is_failing = false;
                    if all {
                        all_at = Instant::now() + COPY_INTERVAL;
                        pause_until = all_at;
                    }
                }
                Err(error) => {
                    if !is_failing {
                        tracing::warn!(%error, "copying the salts to Redis failed and is retried");
                    }
                    is_failing = true;
                    pause_until = Instant::now() + RETRY_AFTER;
                }
            }
            let next = async {
                tokio::select! {
                    () = self.uncopied.notified() => {}
                    () = tokio::time::sleep_until(pause_until) => {}
                }
            };
            shutdown.unless_requested(next).await;
        }
    }

    /// Returns the cached salts for which `is_wanted` holds, by whether they are copied; of a site the newest one alone.
    fn copyable(&self, is_wanted: impl Fn(bool) -> bool) -> Vec<(SaltId, Salt, DateTime<Utc>)> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let mut salts: Vec<_> = cached
            .iter()
            .filter(|(_, salt)| is_wanted(salt.is_copied))
            .map(|(id, salt)| (*id, salt.salt, salt.ends_at))
            .collect();
        salts.sort_unstable_by_key(|(id, ..)| *id);
        let is_older = |next: &SaltId, id: &SaltId| match (next, id) {
            (SaltId::Period(next, _), SaltId::Period(site_id, _)) => next == site_id,
            _ => false,
        };
        let mut newest: Vec<(SaltId, Salt, DateTime<Utc>)> = Vec::with_capacity(salts.len());
        for salt in salts {
            if newest.last().is_some_and(|last| is_older(&salt.0, &last.0)) {
                newest.pop();
            }
            newest.push(salt);
        }
        newest
    }

    fn record_copies(&self, copied: &[(SaltId, Salt, DateTime<Utc>)]) {
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        for (id, salt, ends_at) in copied {
            if let Some(cached) = cached.get_mut(id)
                && (cached.salt, cached.ends_at) == (*salt, *ends_at)
            {
                cached.is_copied = true;
            }
        }
    }
}
