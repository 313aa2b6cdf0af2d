//! Takes sealed segments to ClickHouse, oldest first, and doesn't let go of one before it is stored.

use std::path::Path;
use std::time::Duration;

use service::{Clock, Shutdown, metrics};
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;
use warehouse::Warehouse;

use super::folder::SealedSegment;
use super::line::{self, Foreign, Lines};
use super::room::Room;

const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_LONGEST: Duration = Duration::from_secs(10);
/// What is still tried for once the service is to stop. All is safe on disk: the next start sends the rest.
const LAST_CHANCE: Duration = Duration::from_secs(5);

/// The one task that inserts.
pub(crate) struct Shipper {
    warehouse: Warehouse,
    clock: Clock,
    shutdown: Shutdown,
    sealed: mpsc::Receiver<SealedSegment>,
    room: Room,
}

/// Why a segment isn't in ClickHouse.
#[derive(Debug, thiserror::Error)]
enum Unshipped {
    #[error(transparent)]
    Warehouse(#[from] warehouse::Error),
    #[error("reading: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error(transparent)]
    Foreign(#[from] Foreign),
    #[error("the service stopped first")]
    Stopped,
}

impl Shipper {
    pub(super) fn new(
        warehouse: Warehouse,
        sealed: mpsc::Receiver<SealedSegment>,
        room: Room,
        clock: Clock,
        shutdown: Shutdown,
    ) -> Self {
        Self { warehouse, clock, shutdown, sealed, room }
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
        while let Some(segment) = self.sealed.recv().await {
            let shipped = self.ship_until_stored(&segment).await;
            report_oldest(0.0);
            match shipped {
                Ok(()) => {
                    segment.delete()?;
                    self.room.freed(segment.bytes);
                }
                Err(Unshipped::Stopped) => break,
                Err(error) => {
                    tracing::error!(%error, segment = %segment.id, "a segment is refused and set aside: look into it");
                    metrics::counter("collector_segment_refuse_total").add(1, &[]);
                    segment.refuse()?;
                }
            }
        }
        Ok(())
    }

    /// Tries until the segment is stored; gives up only where trying again can't help, or the service stops.
    async fn ship_until_stored(&self, segment: &SealedSegment) -> Result<(), Unshipped> {
        let mut pause = PAUSE_FIRST;
        loop {
            let error = match self.ship(segment).await {
                Err(Unshipped::Warehouse(error)) if error.retryable() => error,
                done => return done,
            };
            metrics::counter("collector_insert_fail_total").add(1, &[]);
            tracing::warn!(%error, segment = %segment.id, ?pause, "ClickHouse didn't take a segment");
            report_oldest(self.age_seconds(segment.id));
            if self.shutdown.is_requested() {
                return Err(Unshipped::Stopped);
            }
            // The pause is the point: ClickHouse is away or overloaded.
            self.shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + pause)).await;
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
    }

    async fn ship(&self, segment: &SealedSegment) -> Result<(), Unshipped> {
        let Lines { events, skipped } = read(&segment.path).await?;
        if skipped > 0 {
            tracing::warn!(skipped, segment = %segment.id, "torn or damaged lines are passed over");
            metrics::counter("collector_line_skip_total").add(skipped, &[]);
        }
        if events.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        self.warehouse.insert_events(&segment.id.to_string(), &events).await?;
        metrics::histogram("collector_segment_insert_seconds").record_elapsed(begun.elapsed(), &[]);
        metrics::counter("collector_event_insert_total").add(events.len() as u64, &[]);
        Ok(())
    }

    fn age_seconds(&self, id: Uuid) -> f64 {
        let begun = id
            .get_timestamp()
            .map_or(0.0, |time| Duration::new(time.to_unix().0, time.to_unix().1).as_secs_f64());
        let now = self.clock.now().timestamp_millis();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit 53 bits")]
        let age = now as f64 / 1_000.0 - begun;
        age.max(0.0)
    }
}

/// The age of what has waited longest while ClickHouse doesn't take it.
fn report_oldest(seconds: f64) {
    metrics::gauge("collector_segment_oldest_seconds").set(seconds, &[]);
}

async fn read(path: &Path) -> Result<Lines, Unshipped> {
    let bytes = tokio::fs::read(path).await?;
    // Megabytes of JSON: not on a thread that serves requests.
    let lines =
        tokio::task::spawn_blocking(move || line::decode(&bytes)).await.map_err(std::io::Error::other)?;
    Ok(lines?)
}
