//! What was not counted, for those whose sites it would have been counted for: added up here, written to Postgres
//! every few seconds. While Postgres is away it goes on adding; a kill loses the last seconds of these sums.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::tracking::Dropped;
use service::{Clock, Shutdown};
use store::Db;
use store::dropped_events::DroppedEvents;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use uuid::Uuid;

/// How long they are kept: a little over the day that is shown.
const KEPT: TimeDelta = TimeDelta::hours(25);

/// Sums of dropped events. Clones share them.
#[derive(Clone)]
pub(crate) struct DroppedEvents {
    db: Db,
    clock: Clock,
    counts: Arc<Mutex<Counts>>,
}

/// How many, of each site and in each hour, for each reason.
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

    /// Writes them down, and once more at the end.
    pub(crate) async fn write(self, every: Duration, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let stopped = shutdown.unless_requested(ticks.tick()).await.is_none();
            if let Err(error) = self.flush().await {
                tracing::warn!(%error, "what was dropped can't be written down yet");
            }
            if stopped {
                return Ok(());
            }
        }
    }

    async fn flush(&self) -> Result<(), store::Error> {
        let mut conn = store::acquire(&self.db).await?;
        store::dropped_events::delete_dropped_events_before(&mut conn, self.clock.now() - KEPT).await?;
        let counts = std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        let drops: Vec<DroppedEvents> = counts
            .iter()
            .map(|(&(site_id, hour, reason), &count)| DroppedEvents {
                site_id,
                hour,
                reason: reason.word(),
                count,
            })
            .collect();
        let added = if drops.is_empty() {
            Ok(())
        } else {
            store::dropped_events::add_dropped_events(&mut conn, &drops).await
        };
        if added.is_err() {
            let mut kept = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.into_iter().for_each(|(key, count)| *kept.entry(key).or_default() += count);
        }
        added
    }
}
