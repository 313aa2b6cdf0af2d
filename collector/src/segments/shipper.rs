//! Sends sealed segments to ClickHouse, oldest first. Each shard of a cluster has a shipper of its own, so that a shard that
//! is away delays only its own events: the others go on, and its events wait on disk.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use service::{Clock, Shutdown};
use tokio::sync::mpsc;
use tokio::time::Instant;
use warehouse::Shards;

use super::backlog::Backlog;
use super::delivery::Stores;
use super::folder::SealedSegment;
use super::shard_load::ShardLoad;
use super::shard_shipper::ShardShipper;
use super::shared_segment::SharedSegment;
use crate::metrics;

/// How long segments are still sent after shutdown was requested. The next start sends the rest.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// How soon ClickHouse is asked again for its shards.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How often the age of the oldest event is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// While a shard is away, each segment leaves a file for it. This pause makes them fewer.
const PAUSE_WHILE_AWAY: Duration = Duration::from_secs(1);

/// The only task that inserts.
pub(crate) struct Shipper {
    stores: Stores,
    clock: Clock,
    shutdown: Shutdown,
    sealed: mpsc::Receiver<SealedSegment>,
    backlog: Backlog,
    load: Arc<ShardLoad>,
}

impl Shipper {
    pub(super) fn new(
        stores: Stores,
        sealed: mpsc::Receiver<SealedSegment>,
        backlog: Backlog,
        clock: Clock,
        shutdown: Shutdown,
    ) -> Self {
        Self { stores, clock, shutdown, sealed, backlog, load: Arc::default() }
    }

    /// Sends segments until the writer has ended and none is left, or until [`DRAIN_TIMEOUT`] after a shutdown request.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        metrics::SEGMENT_OLDEST_SECONDS.set(0.0, &[]);
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
        let Some(shards) = self.find_shards().await else { return Ok(()) };
        self.load = Arc::new(ShardLoad::new(shards.count()));
        let (queues, shippers): (Vec<_>, Vec<_>) =
            (0..shards.count()).map(|shard| self.shard_shipper(shard, &shards)).unzip();
        let shippers = try_join_all(shippers.into_iter().map(ShardShipper::run));
        tokio::try_join!(self.dispatch(queues, &shards), shippers)?;
        Ok(())
    }

    /// Asks ClickHouse for its shards until it answers. Returns `None` if the service stops first.
    async fn find_shards(&self) -> Option<Shards> {
        loop {
            match self.stores.warehouse.list_shards().await {
                Ok(shards) => return Some(shards),
                Err(error) => {
                    tracing::warn!(%error, "reading ClickHouse's shards failed: events wait on disk");
                }
            }
            if self.shutdown.is_requested() {
                return None;
            }
            self.report_oldest();
            self.pause(RETRY_INTERVAL).await;
        }
    }

    fn shard_shipper(
        &self,
        shard: usize,
        shards: &Shards,
    ) -> (mpsc::UnboundedSender<Arc<SharedSegment>>, ShardShipper) {
        // Bounded by the bytes of the backlog.
        let (queue, segments) = mpsc::unbounded_channel();
        let base = (self.clock.clone(), self.shutdown.clone());
        let of = (shard, shards.clone());
        let shipper = ShardShipper::new(
            self.stores.clone(),
            of,
            segments,
            self.backlog.clone(),
            Arc::clone(&self.load),
            base,
        );
        (queue, shipper)
    }

    /// Passes each segment to the shippers of all shards, as soon as one of them has none.
    async fn dispatch(
        &mut self,
        queues: Vec<mpsc::UnboundedSender<Arc<SharedSegment>>>,
        shards: &Shards,
    ) -> anyhow::Result<()> {
        let mut reports = service::ticks(REPORT_INTERVAL);
        let load = Arc::clone(&self.load);
        loop {
            let next = tokio::select! {
                _ = reports.tick() => {
                    self.report_oldest();
                    continue;
                }
                segment = async { load.ready().await; self.sealed.recv().await } => segment,
                // The service stops, and no shard answers.
                () = all_closed(&queues) => None,
            };
            let Some(segment) = next else { return Ok(()) };
            let segment = Arc::new(SharedSegment::new(segment, shards));
            self.load.add(segment.id(), segment.since());
            self.report_oldest();
            for queue in &queues {
                // A shipper that has ended has failed, and so does this task.
                let _ended = queue.send(Arc::clone(&segment));
            }
            if self.load.any_away() {
                self.pause(PAUSE_WHILE_AWAY).await;
            }
        }
    }

    async fn pause(&self, duration: Duration) {
        self.shutdown.unless_requested(tokio::time::sleep_until(Instant::now() + duration)).await;
    }

    /// Reports the age of the oldest unsent event.
    fn report_oldest(&self) {
        let seconds = match self.load.oldest() {
            Some(oldest) => (self.clock.now() - oldest).to_std().unwrap_or_default().as_secs_f64(),
            // One is on its way.
            None if !self.sealed.is_empty() => return,
            None => 0.0,
        };
        metrics::SEGMENT_OLDEST_SECONDS.set(seconds, &[]);
    }
}

/// Waits until all shippers have ended.
async fn all_closed<T>(queues: &[mpsc::UnboundedSender<T>]) {
    for queue in queues {
        queue.closed().await;
    }
}
