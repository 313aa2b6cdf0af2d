//! Takes sealed segments to ClickHouse, oldest first, and doesn't let go of one before it is stored.

use std::time::Duration;

use service::{Clock, Shutdown, metrics};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use uuid::Uuid;

use super::Stores;
use super::delivery::{Delivery, Shipped, Unshipped, age};
use super::folder::SealedSegment;
use super::room::Room;

const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_LONGEST: Duration = Duration::from_secs(10);
/// What is still tried for once the service is to stop. All is safe on disk: the next start sends the rest.
const LAST_CHANCE: Duration = Duration::from_secs(5);

/// How soon segments are looked at again that wait for Postgres.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The one task that inserts.
pub(crate) struct Shipper {
    delivery: Delivery,
    clock: Clock,
    shutdown: Shutdown,
    sealed: mpsc::Receiver<SealedSegment>,
    /// Sent, but for events whose site is not known yet.
    held: Vec<SealedSegment>,
    room: Room,
}

impl Shipper {
    pub(super) fn new(
        stores: Stores,
        sealed: mpsc::Receiver<SealedSegment>,
        room: Room,
        clock: Clock,
        shutdown: Shutdown,
    ) -> Self {
        let delivery = Delivery { stores, clock: clock.clone() };
        Self { delivery, clock, shutdown, sealed, held: Vec::new(), room }
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
        let mut looks = interval_at(Instant::now() + LOOK_AGAIN_AFTER, LOOK_AGAIN_AFTER);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                segment = self.sealed.recv() => match segment {
                    Some(segment) => if !self.ship_one(segment).await? {
                        return Ok(());
                    },
                    None => return Ok(()),
                },
                _ = looks.tick(), if !self.held.is_empty() => self.ship_held().await?,
            }
        }
    }

    /// Gives whether to go on.
    async fn ship_one(&mut self, segment: SealedSegment) -> anyhow::Result<bool> {
        let shipped = self.ship_until_stored(&segment).await;
        report_oldest(0.0);
        match shipped {
            Ok(Shipped::Whole) => self.done(&segment)?,
            Ok(Shipped::ButUnheard) => self.held.push(segment),
            Err(Unshipped::Stopped) => return Ok(false),
            Err(error) => {
                tracing::error!(%error, segment = %segment.id, "a segment is refused and set aside: look into it");
                metrics::counter("collector_segment_refuse_total").add(1, &[]);
                segment.refuse()?;
            }
        }
        Ok(true)
    }

    /// What still can't be told stays for the next look, or the next start.
    async fn ship_held(&mut self) -> anyhow::Result<()> {
        for segment in std::mem::take(&mut self.held) {
            match self.delivery.ship_unheard(&segment).await {
                Ok(()) => self.done(&segment)?,
                Err(error) => {
                    tracing::warn!(%error, segment = %segment.id, "events of sites unheard of wait");
                    self.held.push(segment);
                }
            }
        }
        Ok(())
    }

    fn done(&self, segment: &SealedSegment) -> std::io::Result<()> {
        segment.delete()?;
        self.room.freed(segment.bytes);
        Ok(())
    }

    /// Tries until the segment is stored; gives up only where trying again can't help, or the service stops.
    async fn ship_until_stored(&self, segment: &SealedSegment) -> Result<Shipped, Unshipped> {
        let mut pause = PAUSE_FIRST;
        loop {
            let error = match self.delivery.ship(segment).await {
                Err(error) if error.retryable() => error,
                done => return done,
            };
            metrics::counter("collector_insert_fail_total").add(1, &[]);
            tracing::warn!(%error, segment = %segment.id, ?pause, "a segment can't be sent on yet");
            report_oldest(self.age_seconds(segment.id));
            if self.shutdown.is_requested() {
                return Err(Unshipped::Stopped);
            }
            // The pause is the point: ClickHouse is away or overloaded.
            self.shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + pause)).await;
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
    }

    fn age_seconds(&self, id: Uuid) -> f64 {
        age(id, &self.clock).as_secs_f64()
    }
}

/// The age of what has waited longest while ClickHouse doesn't take it.
fn report_oldest(seconds: f64) {
    metrics::gauge("collector_segment_oldest_seconds").set(seconds, &[]);
}
