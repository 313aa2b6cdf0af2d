//! A write-ahead log of events on the local disk, between the response to the browser and the insert into ClickHouse.
//!
//! A segment is a file with one record per event. Its name shows its state:
//!
//! | name | state |
//! | --- | --- |
//! | `<id>.open` | being written; an event is answered only after the `fdatasync` of its group |
//! | `<id>.sealed` | immutable; inserted with its id as deduplication token, then deleted |
//! | `<id>.refused` | rejected by ClickHouse; retained, and retried at the next start |
//!
//! Sealing is one atomic rename, and only sealed segments are inserted. So a token always stands for the same events,
//! and a kill at any point neither loses an answered event nor counts one twice: at start, an open segment is sealed as
//! it is (a torn last record was never answered), and a sealed one is inserted again under its old token, without the
//! events that ClickHouse already has (it remembers a token only for a limited number of inserts). A segment is deleted
//! only after the visits of its events are computed, which is idempotent.
//!
//! On a cluster, each shard gets its own events of a segment, under a token of its own, and at its own time. What a shard
//! that is away has not got yet stays on disk.

mod backlog;
mod delivery;
mod folder;
mod journal;
mod preallocated;
mod record;
mod shard_load;
mod shard_shipper;
mod shared_segment;
mod shipper;
#[cfg(test)]
mod tests;

use std::path::Path;

use service::{Clock, Readiness, Rng, Shutdown};

use backlog::Backlog;
pub(crate) use delivery::Stores;
use folder::Folder;
pub(crate) use folder::list;
pub use folder::{SegmentState, StoredSegment};
pub(crate) use journal::{Journal, Limits, Writer};
pub(crate) use shipper::Shipper;

/// Locks the folder. Returns the journal and its two tasks, which end in this order after the last [`Journal`] is
/// dropped.
pub(crate) fn open(
    folder: &Path,
    limits: Limits,
    stores: Stores,
    (clock, rng, shutdown): (Clock, Rng, Shutdown),
    readiness: &Readiness,
) -> anyhow::Result<(Journal, Writer, Shipper)> {
    let (path, (folder, leftovers)) = (folder, Folder::open(folder)?);
    let bytes = leftovers.iter().map(|segment| segment.bytes).sum();
    if !leftovers.is_empty() {
        tracing::info!(segments = leftovers.len(), bytes, "sending the events of an earlier process");
    }
    let backlog = Backlog::new(path, bytes, limits.max_unsent_bytes, readiness.register("segments_backlog"));
    let writable = readiness.register("segments_writable");
    let (journal, writer, sealed) =
        Journal::new((folder, leftovers), backlog.clone(), limits, (clock.clone(), rng), writable)?;
    Ok((journal, writer, Shipper::new(stores, sealed, backlog, clock, shutdown)))
}
