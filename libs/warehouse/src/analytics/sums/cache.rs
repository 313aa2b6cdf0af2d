//! The sums of settled visits, kept with a fingerprint of the rows that they were computed from.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::NaiveDate;
use domain::analytics::Sums;
use moka::sync::Cache;

use super::selection::Selection;

/// Memory of all sums of a process, about.
const BYTES_MAX: u64 = 64 << 20;
/// Bounds how long a change lasts that a fingerprint does not show.
const LIFETIME: Duration = Duration::from_secs(3600);
/// Memory of a place in a map: a key's text is elsewhere, and up to half of the places are free.
const ENTRY_BYTES: usize = 2 * size_of::<(String, Sums)>();
/// What the allocator adds to a text.
const TEXT_BYTES: usize = 16;

/// The sums of each key.
pub(super) type SumsByKey = HashMap<String, Sums>;

/// What is stored of a site's days, from `first_day` on and before `until`. Events that are inserted, visits that are recomputed and
/// deletions change it, and a merge that removes replaced rows may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    pub(super) first_day: NaiveDate,
    pub(super) until: NaiveDate,
    /// The number of events.
    pub(super) events: u64,
    /// The number of rows of visits, replaced ones included.
    pub(super) visits: u64,
    /// The sum of their versions: a visit that changed stays distinguishable when its replaced row is gone.
    pub(super) versions: u64,
}

impl Fingerprint {
    /// Adds visits and their versions, in wrapping arithmetic.
    pub(super) fn add_visits(&mut self, count: u64, versions: u64) {
        self.visits = self.visits.wrapping_add(count);
        self.versions = self.versions.wrapping_add(versions);
    }
}

/// Caches sums. Clones share it.
#[derive(Clone)]
pub(crate) struct SumsCache(Cache<(Selection, Fingerprint), Arc<SumsByKey>>);

impl SumsCache {
    pub(crate) fn new() -> Self {
        let bytes = |(selection, _): &(Selection, Fingerprint), sums: &Arc<SumsByKey>| {
            let keys: usize = sums.keys().map(|key| key.len() + TEXT_BYTES + ENTRY_BYTES).sum();
            u32::try_from(keys + selection.size()).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().max_capacity(BYTES_MAX).weigher(bytes).time_to_live(LIFETIME).build())
    }

    /// Returns the sums if they were computed from these rows.
    pub(super) fn get(&self, selection: &Selection, fingerprint: Fingerprint) -> Option<Arc<SumsByKey>> {
        self.0.get(&(selection.clone(), fingerprint))
    }

    /// Keeps sums. The fingerprint must be older than they are: if rows changed in between, the next one is another.
    pub(super) fn insert(&self, selection: Selection, fingerprint: Fingerprint, sums: Arc<SumsByKey>) {
        self.0.insert((selection, fingerprint), sums);
    }
}
