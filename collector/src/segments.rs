//! Events between the answer to the browser and ClickHouse: files on this machine's disk.
//!
//! A segment is a file of lines, one event each, and lives through three names:
//!
//! | name | |
//! | --- | --- |
//! | `<id>.open` | being written; an event is answered only after `fdatasync` of the group it came in |
//! | `<id>.sealed` | never changes again; inserted with its id as deduplication token, then deleted |
//! | `<id>.refused` | ClickHouse said it can't be read; kept, and tried again at the next start |
//!
//! Sealing is one atomic rename, and only sealed segments are ever inserted. So whatever was inserted under a token
//! is exactly what will be inserted under it again, and a kill at any point loses nothing answered and doubles
//! nothing: an open segment found at start is sealed as it is (a torn last line was never answered), a sealed one
//! is inserted once more under its old token, as far as ClickHouse says that it doesn't have its events yet (a token is
//! forgotten some day). A segment is deleted only when its events' visits, too, are worked out: that may be done again
//! as often as need be.

mod backlog;
mod delivery;
mod folder;
mod journal;
mod preallocated;
mod record;
mod shipper;
#[cfg(test)]
mod tests;

use std::path::Path;

use domain::visits::Rules;
use service::{Clock, Readiness, Rng, Shutdown};
use store::read_pool::ReadPool;
use warehouse::Warehouse;

use backlog::Backlog;
use folder::Folder;
pub(crate) use journal::{Journal, Limits, Writer};
pub(crate) use shipper::Shipper;

/// Where events go, and by which rule they become visits.
#[derive(Clone)]
pub(crate) struct Stores {
    pub(crate) warehouse: Warehouse,
    pub(crate) lookups: ReadPool,
    pub(crate) rules: Rules,
}

/// Takes possession of the folder. Gives where events are handed in and the two tasks behind it; they end, in this
/// order, after the last [`Journal`] is dropped.
pub(crate) fn open(
    folder: &Path,
    limits: Limits,
    stores: Stores,
    chassis: (Clock, Rng, Shutdown),
    readiness: &Readiness,
) -> anyhow::Result<(Journal, Writer, Shipper)> {
    let (clock, rng, shutdown) = chassis;
    let (folder, leftovers) = Folder::open(folder)?;
    let bytes = leftovers.iter().map(|segment| segment.bytes).sum();
    if !leftovers.is_empty() {
        tracing::info!(
            segments = leftovers.len(),
            bytes,
            "an earlier process left events: they are sent now"
        );
    }
    let backlog = Backlog::new(bytes, limits.max_unsent_bytes, readiness.register("segments_backlog"));
    let writable = readiness.register("segments_writable");
    let (journal, writer, sealed) =
        Journal::new((folder, leftovers), backlog.clone(), limits, (clock.clone(), rng), writable)?;
    Ok((journal, writer, Shipper::new(stores, sealed, backlog, clock, shutdown)))
}
