//! The segment folder without a running collector: lists its files, and ships them to ClickHouse. For operators who retire a
//! collector, or who find a folder that no collector uses any more.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use service::{Clock, Readiness, Rng, Shutdown};
use store::read_pool::ReadPool;
use tokio::time::Instant;

use crate::config::{Collector, Segments};
use crate::run_on_own_thread;
use crate::segments::{self, Limits, Stores};

pub use crate::segments::{SegmentState, StoredSegment};

/// Pause before segments are tried again that wait for Postgres.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Those sections of the collector's settings that shipping needs.
#[derive(Debug, Clone, Deserialize)]
pub struct Config {
    /// Postgres.
    pub store: store::Config,
    /// ClickHouse.
    pub warehouse: warehouse::Config,
    /// The rules of visits.
    pub collector: Collector,
    /// The folder.
    pub segments: Segments,
}

/// Returns the segments of a folder, oldest first. A collector may be running in it.
///
/// # Errors
/// The folder can't be read.
pub fn list(folder: &Path) -> std::io::Result<Vec<StoredSegment>> {
    segments::list(folder)
}

/// Sends all segments of the folder to ClickHouse as a collector does at its start, for up to `timeout`. Returns those that are
/// left: refused ones, and after the timeout others.
///
/// # Errors
/// A collector is running in the folder, a setting is invalid, or the folder is not writable.
pub async fn ship(config: &Config, timeout: Duration) -> anyhow::Result<Vec<StoredSegment>> {
    config.collector.check()?;
    let deadline = Instant::now() + timeout;
    let lookups = ReadPool::connect(&config.store, config.collector.lookup_connections)?;
    let warehouse =
        warehouse::connect(&config.warehouse)?.reading_own_writes(&config.segments.insert_quorum)?;
    let stores = Stores { warehouse, lookups, rules: config.collector.visit_rules() };
    let mut retries = service::ticks(RETRY_INTERVAL);
    loop {
        retries.tick().await;
        ship_once(config, stores.clone(), deadline).await?;
        let left = list(&config.segments.folder)?;
        let is_done = left.iter().all(|segment| segment.state == SegmentState::Refused);
        if is_done || Instant::now() >= deadline {
            return Ok(left);
        }
    }
}

async fn ship_once(config: &Config, stores: Stores, deadline: Instant) -> anyhow::Result<()> {
    let shutdown = Shutdown::new();
    let base = (Clock::system(), Rng::system(), shutdown.clone());
    let limits = Limits {
        seal_after: config.segments.seal_after,
        max_segment_bytes: config.segments.max_bytes,
        max_unsent_bytes: config.segments.max_unsent_bytes,
    };
    let readiness = Readiness::new(&shutdown);
    let (journal, writer, shipper) =
        segments::open(&config.segments.folder, limits, stores, base, &readiness)?;
    // No event is added, so the writer ends when it has passed on all segments, and then the shipper.
    drop(journal);
    let work =
        async { tokio::try_join!(run_on_own_thread(writer.run(), 0), run_on_own_thread(shipper.run(), 0)) };
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => done?,
        () = tokio::time::sleep_until(deadline) => {
            shutdown.request();
            work.await?
        }
    };
    Ok(())
}
