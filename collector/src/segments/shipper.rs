//! Takes sealed segments to ClickHouse, oldest first, and doesn't let go of one before it is stored. What Postgres must
//! be asked about first is set aside while it is away: nothing else waits for it.

use std::collections::VecDeque;
use std::time::Duration;

use service::{Clock, Shutdown, metrics};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Stores;
use super::backlog::Backlog;
use super::delivery::{Delivery, SegmentPart, Shipment, Unshipped};
use super::folder::SealedSegment;

const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_LONGEST: Duration = Duration::from_secs(10);
/// What is still tried for once the service is to stop. All is safe on disk: the next start sends the rest.
const LAST_CHANCE: Duration = Duration::from_secs(5);

/// How soon what waits for Postgres is looked at again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// For so long after it was first sent, ClickHouse is sure to know a segment's token.
const TOKEN_KNOWN_FOR: Duration = Duration::from_secs(60);

/// While much comes, up to so many times as long as sending took is rested: whoever waits for an answer goes first, and
/// larger segments cost ClickHouse less. The longer events wait, the shorter the rest.
const REST: u32 = 7;
const REST_LONGEST: Duration = Duration::from_secs(1);
/// Who looks at a site's figures waits no longer than this for the sake of those that send.
const BEHIND_MAX: Duration = Duration::from_secs(10);

/// The one task that inserts.
pub(crate) struct Shipper {
    delivery: Delivery,
    clock: Clock,
    shutdown: Shutdown,
    sealed: mpsc::Receiver<SealedSegment>,
    /// What waits for Postgres, and when it is worth another look.
    held: VecDeque<Shipment>,
    look_at: Instant,
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
        Self { delivery, clock, shutdown, sealed, held: VecDeque::new(), look_at: Instant::now(), backlog }
    }

    /// Inserts until the writer has ended and nothing is left, or for a little while after shutdown was requested.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let shutdown = self.shutdown.clone();
        let last_chance = async {
            shutdown.requested().await;
            tokio::time::sleep_until(Instant::now() + LAST_CHANCE).await;
        };
        tokio::select! {
            ended = self.ship_all() => ended,
            () = last_chance => Ok(()),
        }
    }

    async fn ship_all(&mut self) -> anyhow::Result<()> {
        loop {
            // Where there is both, they take turns: what is new doesn't wait for what is held, nor that for the new.
            let next = tokio::select! {
                segment = self.sealed.recv() => segment.map(Shipment::new),
                () = tokio::time::sleep_until(self.look_at), if !self.held.is_empty() => self.held.pop_front(),
            };
            let Some(shipment) = next else { return Ok(()) };
            self.report_oldest(Some(&shipment));
            let (begun, bytes, came_before) = (Instant::now(), shipment.segment.bytes, self.backlog.came());
            let behind = shipment.segment.age(&self.clock);
            if !self.ship_one(shipment).await? {
                return Ok(());
            }
            if self.sealed.is_empty() {
                self.report_oldest(None);
            }
            let rest = rest_after(begun.elapsed(), behind, bytes, self.backlog.came() - came_before);
            // The pause is the point. Nothing rests at the end.
            self.shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + rest)).await;
        }
    }

    /// Gives whether to go on.
    async fn ship_one(&mut self, mut shipment: Shipment) -> anyhow::Result<bool> {
        let segment = shipment.segment.clone();
        match self.ship_until_stored(&mut shipment).await {
            Ok(None) => {
                segment.delete()?;
                self.backlog.freed(segment.bytes);
            }
            Ok(Some(part)) => {
                self.held.push_back(shipment.left(part));
                self.look_at = Instant::now() + LOOK_AGAIN_AFTER;
            }
            Err(Unshipped::Stopped) => return Ok(false),
            Err(error) => {
                tracing::error!(%error, segment = %segment.id, "a segment is refused and set aside: look into it");
                metrics::counter("collector_segments_refused_total").add(1, &[]);
                segment.refuse()?;
            }
        }
        Ok(true)
    }

    /// Tries until everything is stored but what waits for Postgres, which it gives; gives up only where trying again
    /// can't help, or the service stops.
    async fn ship_until_stored(&self, shipment: &mut Shipment) -> Result<Option<SegmentPart>, Unshipped> {
        let (begun, mut pause) = (Instant::now(), PAUSE_FIRST);
        loop {
            let error = match self.delivery.ship(shipment).await {
                Err(error) if error.retryable() => error,
                done => return done,
            };
            shipment.doubtful |= begun.elapsed() >= TOKEN_KNOWN_FOR;
            metrics::counter("collector_inserts_failed_total").add(1, &[]);
            tracing::warn!(%error, segment = %shipment.segment.id, ?pause, "a segment can't be sent on yet");
            self.report_oldest(Some(shipment));
            if self.shutdown.is_requested() {
                return Err(Unshipped::Stopped);
            }
            // The pause is the point: ClickHouse is away or overloaded.
            self.shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + pause)).await;
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
    }

    /// The age of what has waited longest, for ClickHouse or for Postgres.
    fn report_oldest(&self, current: Option<&Shipment>) {
        let ages = self.held.iter().chain(current).map(|shipment| shipment.segment.age(&self.clock));
        let seconds = ages.max().map_or(0.0, |age| age.as_secs_f64());
        metrics::gauge("collector_segment_oldest_seconds").set(seconds, &[]);
    }
}

/// How long to rest after `bytes` were sent that had waited for `behind`, while `came` others came. Where it is no more
/// than one in eight, as after ClickHouse was away, there is no need to.
fn rest_after(spent: Duration, behind: Duration, bytes: u64, came: u64) -> Duration {
    let pressure = hundredths((came * 100 / bytes.max(1)).saturating_sub(12) * 8);
    let rest = (spent.min(REST_LONGEST / REST) * REST) * pressure / 100;
    rest.mul_f64(1.0 - behind.div_duration_f64(BEHIND_MAX).min(1.0))
}

fn hundredths(percent: u64) -> u32 {
    u32::try_from(percent.min(100)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_rests_only_while_much_comes_and_never_for_long() {
        let (spent, now) = (Duration::from_millis(100), Duration::ZERO);
        assert_eq!(rest_after(spent, now, 1_000, 1_000), spent * REST);
        assert_eq!(rest_after(spent, now, 1_000, 250), spent * REST);
        assert_eq!(rest_after(spent, now, 1_000, 120), Duration::ZERO);
        assert_eq!(rest_after(spent, now, 1_000, 0), Duration::ZERO);
        assert_eq!(rest_after(spent, BEHIND_MAX / 2, 1_000, 1_000), spent * REST / 2);
        assert_eq!(rest_after(spent, BEHIND_MAX * 2, 1_000, 1_000), Duration::ZERO);
        assert!(rest_after(Duration::from_secs(600), now, 1_000, 9_000) <= REST_LONGEST);
    }
}
