//! Sends the events of one shard, segment after segment, and retries each until it is stored. Segments that need Postgres are
//! set aside while it is unavailable, so that no other segment waits for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use service::{Clock, Shutdown};
use tokio::sync::mpsc;
use tokio::time::Instant;
use warehouse::Shards;

use super::backlog::Backlog;
use super::delivery::{Delivery, SegmentPart, ShipError, Shipment, Stores};
use super::shard_load::ShardLoad;
use super::shared_segment::SharedSegment;
use crate::metrics;

const MIN_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// How soon segments that wait for Postgres are retried.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// For this long after the first attempt, ClickHouse certainly remembers a segment's token.
const TOKEN_REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// Under load the shipper pauses for up to this many times the duration of a delivery: requests take precedence, and
/// larger segments cost ClickHouse less. The longer events have waited, the shorter the pause.
const MAX_PAUSE_FACTOR: u32 = 7;
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Beyond this delay of events the shipper does not pause, so that figures stay current.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// The only task that inserts into its shard.
pub(super) struct ShardShipper {
    delivery: Delivery,
    clock: Clock,
    shutdown: Shutdown,
    segments: mpsc::UnboundedReceiver<Arc<SharedSegment>>,
    /// Shipments that wait for Postgres, and the time of their next attempt.
    held: VecDeque<Shipment>,
    retry_at: Instant,
    backlog: Backlog,
    load: Arc<ShardLoad>,
}

impl ShardShipper {
    pub(super) fn new(
        stores: Stores,
        (shard, shards): (usize, Shards),
        segments: mpsc::UnboundedReceiver<Arc<SharedSegment>>,
        backlog: Backlog,
        load: Arc<ShardLoad>,
        (clock, shutdown): (Clock, Shutdown),
    ) -> Self {
        let delivery = Delivery { stores, shard, shards, clock: clock.clone() };
        let (held, retry_at) = (VecDeque::new(), Instant::now());
        Self { delivery, clock, shutdown, segments, held, retry_at, backlog, load }
    }

    /// Sends segments until no more come, or the service stops.
    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        loop {
            // `select!` is fair: neither new nor held segments starve.
            let (shipment, is_new) = tokio::select! {
                segment = self.segments.recv() => (segment.map(Shipment::new), true),
                () = tokio::time::sleep_until(self.retry_at), if !self.held.is_empty() => (self.held.pop_front(), false),
            };
            let Some(shipment) = shipment else { return Ok(()) };
            let (started, bytes, added_before) =
                (Instant::now(), shipment.segment.bytes(), self.backlog.total_added());
            let delay = shipment.segment.age(&self.clock);
            if !self.ship_one(shipment).await? {
                return Ok(());
            }
            let added = self.backlog.total_added() - added_before;
            let pause = pause_after(started.elapsed(), delay, bytes, added);
            self.shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + pause)).await;
            if is_new {
                self.load.set_ready(self.delivery.shard);
            }
        }
    }

    /// Returns `false` if the shipper must stop.
    async fn ship_one(&mut self, mut shipment: Shipment) -> anyhow::Result<bool> {
        let segment = Arc::clone(&shipment.segment);
        let is_refused = match self.ship_until_stored(&mut shipment).await {
            Ok(None) => false,
            Ok(Some(part)) => {
                self.held.push_back(shipment.remaining(part));
                self.retry_at = Instant::now() + RETRY_AFTER;
                return Ok(true);
            }
            Err(ShipError::Stopped) => return Ok(false),
            Err(error) => {
                tracing::error!(%error, segment = %segment.id(), "ClickHouse refused a segment: it is retained for inspection");
                metrics::SEGMENTS_REFUSED.add(1, &[]);
                true
            }
        };
        let Delivery { shard, shards, .. } = &self.delivery;
        let finished = segment.finish(*shard, is_refused, shards, |shard| self.load.is_away(shard))?;
        self.backlog.remove(finished.freed_bytes);
        if finished.is_last {
            self.load.remove(segment.id());
        }
        Ok(true)
    }

    /// Retries until everything is stored, except a part that must wait for Postgres, which is returned. Fails only if
    /// a retry cannot succeed or the service stops.
    async fn ship_until_stored(&self, shipment: &mut Shipment) -> Result<Option<SegmentPart>, ShipError> {
        let (started, mut backoff) = (Instant::now(), MIN_BACKOFF);
        let shard = self.delivery.shard;
        loop {
            let error = match self.delivery.ship(shipment).await {
                Err(error) if error.retryable() => error,
                done => {
                    self.load.set_away(shard, false);
                    return done;
                }
            };
            self.load.set_away(shard, true);
            shipment.token_may_be_forgotten |= started.elapsed() >= TOKEN_REMEMBERED_FOR;
            metrics::INSERTS_FAILED.add(1, &[]);
            tracing::warn!(%error, segment = %shipment.segment.id(), shard = shard + 1, ?backoff, "sending a segment failed: retrying");
            if self.shutdown.is_requested() {
                return Err(ShipError::Stopped);
            }
            self.shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + backoff)).await;
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }
}
/// Returns the pause after `bytes` with a delay of `delay` were sent in `spent`, while `added` bytes arrived. If at most
/// an eighth arrived, as after an outage of ClickHouse, no pause is needed.
fn pause_after(spent: Duration, delay: Duration, bytes: u64, added: u64) -> Duration {
    let load_percent = ((added * 100 / bytes.max(1)).saturating_sub(12) * 8).min(100);
    let load_percent = u32::try_from(load_percent).unwrap_or(100);
    let pause = (spent.min(MAX_PAUSE / MAX_PAUSE_FACTOR) * MAX_PAUSE_FACTOR) * load_percent / 100;
    pause.mul_f64(1.0 - delay.div_duration_f64(MAX_DELAY).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_only_under_load_and_never_for_long() {
        let (spent, now) = (Duration::from_millis(100), Duration::ZERO);
        assert_eq!(pause_after(spent, now, 1_000, 1_000), spent * MAX_PAUSE_FACTOR);
        assert_eq!(pause_after(spent, now, 1_000, 250), spent * MAX_PAUSE_FACTOR);
        assert_eq!(pause_after(spent, now, 1_000, 120), Duration::ZERO);
        assert_eq!(pause_after(spent, now, 1_000, 0), Duration::ZERO);
        assert_eq!(pause_after(spent, MAX_DELAY / 2, 1_000, 1_000), spent * MAX_PAUSE_FACTOR / 2);
        assert_eq!(pause_after(spent, MAX_DELAY * 2, 1_000, 1_000), Duration::ZERO);
        assert!(pause_after(Duration::from_secs(600), now, 1_000, 9_000) <= MAX_PAUSE);
    }
}
