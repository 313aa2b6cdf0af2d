//! A sealed segment with events of several shards, each at its own time. The file is deleted when all have theirs. While
//! the others are away, it is reduced to their events, so that the folder does not fill with those that are stored.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use service::Clock;
use uuid::Uuid;
use warehouse::Shards;

use super::folder::SealedSegment;
use super::record::{self, Records, UnknownRecord};
use crate::metrics;

/// A segment that the shippers of all shards send.
#[derive(Debug)]
pub(super) struct SharedSegment {
    segment: SealedSegment,
    progress: Mutex<Progress>,
    skipped_counted: AtomicBool,
    unknown_counted: AtomicBool,
}

/// Why the events of a segment can't be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("reading: {0}")]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    UnknownRecord(#[from] UnknownRecord),
}

/// The result of [`SharedSegment::finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finished {
    /// Bytes that are no longer needed on disk.
    pub(super) freed_bytes: u64,
    /// No shard misses its events any more.
    pub(super) is_last: bool,
}

#[derive(Debug)]
struct Progress {
    /// The shards that lack their events.
    missing: BTreeSet<usize>,
    /// The file's length.
    bytes: u64,
    is_refused: bool,
}

impl SharedSegment {
    pub(super) fn new(segment: SealedSegment, shards: &Shards) -> Self {
        let progress =
            Progress { missing: (0..shards.count()).collect(), bytes: segment.bytes, is_refused: false };
        Self {
            segment,
            progress: Mutex::new(progress),
            skipped_counted: AtomicBool::new(false),
            unknown_counted: AtomicBool::new(false),
        }
    }

    pub(super) fn id(&self) -> Uuid {
        self.segment.id
    }

    /// When its first event arrived.
    pub(super) fn since(&self) -> DateTime<Utc> {
        self.segment.since
    }

    /// The deduplication token of the events of one shard. Each shard's rows are the same at each attempt, even after the
    /// number of shards has changed.
    pub(super) fn token(&self, shard: usize, shards: &Shards) -> String {
        match shards.count() {
            1 => self.segment.id.to_string(),
            count => format!("{}-{shard}of{count}", self.segment.id),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.progress().bytes
    }

    /// Written by an earlier process, which may have inserted it.
    pub(super) fn is_leftover(&self) -> bool {
        self.segment.leftover
    }

    /// How long its first event has waited.
    pub(super) fn age(&self, clock: &Clock) -> Duration {
        self.segment.age(clock)
    }

    /// Blocks on the file and parses megabytes of JSON; the shipper runs on a thread of its own.
    pub(super) fn read(&self) -> Result<Records, ReadError> {
        let records = record::decode(&std::fs::read(&self.segment.path)?)?;
        if records.skipped > 0 && !self.skipped_counted.swap(true, Ordering::Relaxed) {
            let skipped = records.skipped;
            tracing::warn!(skipped, segment = %self.segment.id, "torn or damaged records are skipped");
            metrics::RECORDS_SKIPPED.add(skipped, &[]);
        }
        Ok(records)
    }

    /// Counts events of unknown sites, which belong to no shard, once.
    pub(super) fn count_unknown(&self, events: usize) {
        if !self.unknown_counted.swap(true, Ordering::Relaxed) {
            metrics::EVENTS_DROPPED.add(events as u64, &[("reason", "unknown_site")]);
        }
    }

    /// Records that the events of `shard` are stored, or that ClickHouse refuses them. If `are_away` says so of
    /// all shards that are missing, the file is reduced to their events.
    pub(super) fn finish(
        &self,
        shard: usize,
        is_refused: bool,
        shards: &Shards,
        are_away: impl Fn(usize) -> bool,
    ) -> io::Result<Finished> {
        let mut progress = self.progress();
        progress.missing.remove(&shard);
        progress.is_refused |= is_refused;
        if progress.missing.is_empty() {
            if progress.is_refused {
                self.segment.refuse()?;
                return Ok(Finished { freed_bytes: 0, is_last: true });
            }
            self.segment.delete()?;
            return Ok(Finished { freed_bytes: progress.bytes, is_last: true });
        }
        if progress.is_refused || !progress.missing.iter().all(|shard| are_away(*shard)) {
            return Ok(Finished { freed_bytes: 0, is_last: false });
        }
        let content = std::fs::read(&self.segment.path)?;
        // The sites of some events are found later, so their shards are unknown.
        let reduced = record::retain(&content, |event| {
            !event.site_token.is_empty() || progress.missing.contains(&shards.shard_of(event.site_id))
        });
        let freed_bytes = content.len().saturating_sub(reduced.len()) as u64;
        if freed_bytes > 0 {
            self.segment.replace(&reduced)?;
            progress.bytes = reduced.len() as u64;
        }
        Ok(Finished { freed_bytes, is_last: false })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use contract::events::Event;
    use tempfile::TempDir;

    use super::super::folder::{Folder, list};
    use super::*;

    /// A segment with the events of ten sites and one event of an unresolved site.
    fn segment(folder: &Path) -> (Folder, SealedSegment) {
        let site = |number: u128| Event { site_id: Uuid::from_u128(number), ..Event::default() };
        let unresolved = Event { site_token: "later".to_owned(), ..Event::default() };
        let events = (0..10).map(site).chain([unresolved]);
        let records: Vec<u8> = events.flat_map(|event| record::encode(&event).unwrap()).collect();
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(format!("{}.sealed", Uuid::from_u128(1))), records).unwrap();
        let (folder, mut leftovers) = Folder::open(folder).unwrap();
        (folder, leftovers.remove(0))
    }

    fn sites(segment: &SharedSegment) -> Vec<Uuid> {
        let events = segment.read().unwrap().events;
        events.iter().filter(|event| event.site_token.is_empty()).map(|event| event.site_id).collect()
    }

    #[test]
    fn a_segment_is_deleted_when_every_shard_has_its_events() {
        let temporary = TempDir::new().unwrap();
        let (_folder, sealed) = segment(temporary.path());
        let (bytes, shards) = (sealed.bytes, Shards::of_weights(&[1, 1, 1]).unwrap());
        let shared = SharedSegment::new(sealed, &shards);
        let finish = |shard| shared.finish(shard, false, &shards, |_| false).unwrap();
        let unchanged = Finished { freed_bytes: 0, is_last: false };
        assert_eq!([finish(2), finish(0)], [unchanged, unchanged]);
        assert_eq!(list(temporary.path()).unwrap().len(), 1);
        assert_eq!(finish(1), Finished { freed_bytes: bytes, is_last: true });
        assert!(list(temporary.path()).unwrap().is_empty());
    }

    #[test]
    fn only_the_events_of_absent_shards_stay_on_disk() {
        let temporary = TempDir::new().unwrap();
        let (_folder, sealed) = segment(temporary.path());
        let (bytes, shards) = (sealed.bytes, Shards::of_weights(&[1, 1]).unwrap());
        let shared = SharedSegment::new(sealed, &shards);
        let all = sites(&shared);
        let token = shared.token(1, &shards);

        let finished = shared.finish(0, false, &shards, |shard| shard == 1).unwrap();
        let left: Vec<Uuid> = all.iter().copied().filter(|site| shards.shard_of(*site) == 1).collect();
        assert!(!left.is_empty() && left.len() < all.len());
        assert_eq!(sites(&shared), left, "in their order, because the token stands for the same insert");
        assert_eq!(shared.token(1, &shards), token);
        assert_eq!(shared.read().unwrap().events.len(), left.len() + 1, "and the unresolved one");
        assert_eq!(finished.freed_bytes, bytes - shared.bytes());
        assert_eq!(list(temporary.path()).unwrap()[0].bytes, shared.bytes());

        let last = shared.finish(1, false, &shards, |_| true).unwrap();
        assert_eq!(finished.freed_bytes + last.freed_bytes, bytes, "the backlog is even");
    }

    #[test]
    fn a_segment_that_one_shard_refuses_is_kept_whole() {
        let temporary = TempDir::new().unwrap();
        let (_folder, sealed) = segment(temporary.path());
        let (bytes, shards) = (sealed.bytes, Shards::of_weights(&[1, 1]).unwrap());
        let shared = SharedSegment::new(sealed, &shards);
        shared.finish(0, true, &shards, |_| true).unwrap();
        shared.finish(1, false, &shards, |_| true).unwrap();
        let [refused] = <[_; 1]>::try_from(list(temporary.path()).unwrap()).unwrap();
        assert_eq!((refused.state.as_str(), refused.bytes), ("refused", bytes));
    }

    #[test]
    fn a_reduction_that_a_kill_interrupts_leaves_the_whole_segment() {
        let temporary = TempDir::new().unwrap();
        let (folder, sealed) = segment(temporary.path());
        fs::write(sealed.path.with_extension("reduced"), "half of i").unwrap();
        drop(folder);
        assert_eq!(Folder::open(temporary.path()).unwrap().1, [sealed]);
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 2, "the segment and the lock file");
    }

    #[test]
    fn each_shards_events_have_a_token_of_their_own() {
        let temporary = TempDir::new().unwrap();
        let (_folder, sealed) = segment(temporary.path());
        let id = sealed.id.to_string();
        let tokens = |weights: &[u32]| {
            let shards = Shards::of_weights(weights).unwrap();
            let shared = SharedSegment::new(sealed.clone(), &shards);
            (0..shards.count()).map(|shard| shared.token(shard, &shards)).collect::<Vec<_>>()
        };
        assert_eq!(tokens(&[1]), std::slice::from_ref(&id));
        assert_eq!(tokens(&[1, 1]), [format!("{id}-0of2"), format!("{id}-1of2")]);
    }
}
