//! Counts dropped events: in a metric by reason, and for the site's owner by site, hour and reason. The latter are
//! summed in memory and added to Postgres every few seconds. While Postgres is unavailable the sums keep growing; a
//! kill loses the last seconds of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::tracking::Dropped;
use service::{Clock, Rounds, Shutdown};
use store::Db;
use store::dropped_events::DroppedEvents as DroppedEventsRow;
use uuid::Uuid;

use crate::metrics;

/// The API shows the last 24 hours, counted by whole hours.
const RETENTION: TimeDelta = TimeDelta::hours(25);

/// Counts an event that ended before the warehouse.
pub(crate) fn count_dropped(reason: Dropped) {
    metrics::EVENTS_DROPPED.add(1, &[("reason", reason.as_str())]);
}

/// Sums of dropped events by site. Clones share them.
#[derive(Clone)]
pub(crate) struct DroppedEvents {
    db: Db,
    clock: Clock,
    counts: Arc<Mutex<Counts>>,
}

/// Number of events by site, hour and reason.
type Counts = HashMap<(Uuid, DateTime<Utc>, Dropped), i64>;

impl DroppedEvents {
    pub(crate) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock, counts: Arc::default() }
    }

    pub(crate) fn add(&self, site_id: Uuid, reason: Dropped, now: DateTime<Utc>) {
        let hour = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((site_id, hour, reason)).or_default() += 1;
    }

    /// Flushes the sums every `interval`, and once more at shutdown.
    pub(crate) async fn run(
        self,
        interval: Duration,
        rounds: Rounds,
        shutdown: Shutdown,
    ) -> anyhow::Result<()> {
        let mut ticks = service::ticks_after(interval, interval);
        loop {
            let stopped = shutdown.unless_requested(ticks.tick()).await.is_none();
            if let Err(error) = rounds.watch(self.flush()).await {
                tracing::warn!(%error, "flushing the counts of dropped events failed: retrying");
            }
            if stopped {
                return Ok(());
            }
        }
    }

    async fn flush(&self) -> Result<(), store::Error> {
        let mut conn = store::acquire(&self.db).await?;
        store::dropped_events::delete_dropped_events_before(&mut conn, self.clock.now() - RETENTION).await?;
        let counts = std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        let drops: Vec<DroppedEventsRow> = counts
            .iter()
            .map(|(&(site_id, hour, reason), &count)| DroppedEventsRow {
                site_id,
                hour,
                reason: reason.as_str(),
                count,
            })
            .collect();
        let added = if drops.is_empty() {
            Ok(())
        } else {
            store::dropped_events::add_dropped_events(&mut conn, &drops).await
        };
        if added.is_err() {
            let mut current = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.into_iter().for_each(|(key, count)| *current.entry(key).or_default() += count);
        }
        added
    }
}
