//! Sends sealed segments to ClickHouse, oldest first, and retries each until it is stored. Segments that need Postgres
//! are set aside while it is unavailable, so that no other segment waits for it.

use std::collections::VecDeque;
use std::time::Duration;

use service::{Clock, Shutdown};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::backlog::Backlog;
use super::delivery::{Delivery, SegmentPart, ShipError, Shipment, Stores};
use super::folder::SealedSegment;
use crate::metrics;

const MIN_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// How long segments are still sent after shutdown was requested. The next start sends the rest.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// How soon segments that wait for Postgres are retried.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How often the age of the oldest unsent event is reported while ClickHouse does not answer.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// For this long after the first attempt, ClickHouse certainly remembers a segment's token.
const TOKEN_REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// Under load the shipper pauses for up to this many times the duration of a delivery: requests take precedence, and
/// larger segments cost ClickHouse less. The longer events have waited, the shorter the pause.
const MAX_PAUSE_FACTOR: u32 = 7;
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Beyond this delay of events the shipper does not pause, so that figures stay current.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// The only task that inserts.
pub(crate) struct Shipper {
    delivery: Delivery,
    clock: Clock,
    shutdown: Shutdown,
    sealed: mpsc::Receiver<SealedSegment>,
    /// Shipments that wait for Postgres, and the time of their next attempt.
    held: VecDeque<Shipment>,
    retry_at: Instant,
    backlog: Backlog,
}

impl Shipper {
    pub(super) fn new(
        stores: Stores,
        sealed: mpsc::Receiver<SealedSegment>,
        backlog: Backlog,
        clock: Clock,
        shutdown: Shutdown,
    ) -> Self {
        let delivery = Delivery { stores, clock: clock.clone() };
        Self { delivery, clock, shutdown, sealed, held: VecDeque::new(), retry_at: Instant::now(), backlog }
    }

    /// Sends segments until the writer has ended and none is left, or until [`DRAIN_TIMEOUT`] after a shutdown request.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        self.report_oldest(None);
        let shutdown = self.shutdown.clone();
        let drain_timeout = async {
            shutdown.requested().await;
            tokio::time::sleep_until(Instant::now() + DRAIN_TIMEOUT).await;
        };
        tokio::select! {
            ended = self.ship_all() => ended,
            () = drain_timeout => Ok(()),
        }
    }

    async fn ship_all(&mut self) -> anyhow::Result<()> {
        loop {
            // `select!` is fair: neither new nor held segments starve.
            let next = tokio::select! {
                segment = self.sealed.recv() => segment.map(Shipment::new),
                () = tokio::time::sleep_until(self.retry_at), if !self.held.is_empty() => self.held.pop_front(),
            };
            let Some(shipment) = next else { return Ok(()) };
            let (started, bytes, added_before) =
                (Instant::now(), shipment.segment.bytes, self.backlog.total_added());
            let delay = shipment.segment.age(&self.clock);
            if !self.ship_one(shipment).await? {
                return Ok(());
            }
            if self.sealed.is_empty() {
                self.report_oldest(None);
            }
            let added = self.backlog.total_added() - added_before;
            let pause = pause_after(started.elapsed(), delay, bytes, added);
            self.shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + pause)).await;
        }
    }

    /// Returns `false` if the shipper must stop.
    async fn ship_one(&mut self, mut shipment: Shipment) -> anyhow::Result<bool> {
        let segment = shipment.segment.clone();
        match self.ship_reporting(&mut shipment).await {
            Ok(None) => {
                segment.delete()?;
                self.backlog.remove(segment.bytes);
            }
            Ok(Some(part)) => {
                self.held.push_back(shipment.remaining(part));
                self.retry_at = Instant::now() + RETRY_AFTER;
            }
            Err(ShipError::Stopped) => return Ok(false),
            Err(error) => {
                tracing::error!(%error, segment = %segment.id, "ClickHouse refused a segment: it is retained for inspection");
                metrics::SEGMENTS_REFUSED.add(1, &[]);
                segment.refuse()?;
            }
        }
        Ok(true)
    }

    /// Ships, and reports the age of the oldest unsent event meanwhile: one request may take a minute.
    async fn ship_reporting(&self, shipment: &mut Shipment) -> Result<Option<SegmentPart>, ShipError> {
        let segment = shipment.segment.clone();
        let mut ticks = tokio::time::interval(REPORT_INTERVAL);
        let mut shipping = std::pin::pin!(self.ship_until_stored(shipment));
        loop {
            tokio::select! {
                done = &mut shipping => return done,
                _ = ticks.tick() => self.report_oldest(Some(&segment)),
            }
        }
    }

    /// Retries until everything is stored, except a part that must wait for Postgres, which is returned. Fails only if
    /// a retry cannot succeed or the service stops.
    async fn ship_until_stored(&self, shipment: &mut Shipment) -> Result<Option<SegmentPart>, ShipError> {
        let (started, mut backoff) = (Instant::now(), MIN_BACKOFF);
        loop {
            let error = match self.delivery.ship(shipment).await {
                Err(error) if error.retryable() => error,
                done => return done,
            };
            shipment.token_may_be_forgotten |= started.elapsed() >= TOKEN_REMEMBERED_FOR;
            metrics::INSERTS_FAILED.add(1, &[]);
            tracing::warn!(%error, segment = %shipment.segment.id, ?backoff, "sending a segment failed: retrying");
            if self.shutdown.is_requested() {
                return Err(ShipError::Stopped);
            }
            self.shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + backoff)).await;
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    /// Reports the age of the oldest unsent event.
    fn report_oldest(&self, current: Option<&SealedSegment>) {
        let held = self.held.iter().map(|shipment| &shipment.segment);
        let ages = held.chain(current).map(|segment| segment.age(&self.clock));
        let seconds = ages.max().map_or(0.0, |age| age.as_secs_f64());
        metrics::SEGMENT_OLDEST_SECONDS.set(seconds, &[]);
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
