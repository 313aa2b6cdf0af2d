//! The names and the memory of caches.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use service::metrics::Series;

/// A cache of the edge, at the position of its name in [`CacheName::NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheName {
    Hosts,
    Answers,
    RuledSites,
    ShortUrls,
    Sitemaps,
    Assets,
    Files,
    CompressedFiles,
    Forms,
    FormPages,
    FormResults,
    Certificates,
}

/// Returns the weight of a cache, or `None` once the cache is dropped.
pub(super) type ReadWeight = Box<dyn Fn() -> Option<u64> + Send + Sync>;

static WEIGHTS: Mutex<Vec<(&'static str, ReadWeight)>> = Mutex::new(Vec::new());

impl CacheName {
    pub(crate) const COUNT: usize = Self::NAMES.len();

    pub(crate) const NAMES: [&str; 12] = [
        "hosts",
        "answers",
        "ruled_sites",
        "short_urls",
        "sitemaps",
        "assets",
        "files",
        "compressed_files",
        "forms",
        "form_pages",
        "form_results",
        "certificates",
    ];
}

/// Adds a cache to those with a weight.
pub(super) fn register(name: CacheName, read: ReadWeight) {
    WEIGHTS.lock().unwrap_or_else(PoisonError::into_inner).push((CacheName::NAMES[name as usize], read));
}

/// Returns the weight of each cache; of caches with the same name, the sum.
pub(super) fn read() -> Vec<Series> {
    let mut sums = BTreeMap::new();
    WEIGHTS.lock().unwrap_or_else(PoisonError::into_inner).retain(|(name, read)| {
        let weight = read();
        *sums.entry(*name).or_insert(0) += weight.unwrap_or_default();
        weight.is_some()
    });
    #[expect(clippy::cast_precision_loss, reason = "a gauge needs no more than 53 bits")]
    sums.into_iter().map(|(name, bytes)| (vec![("cache", name)], bytes as f64)).collect()
}
