//! The site that a connection asked for last, so that its next request skips the shared cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use store::subdomains::Site;

use crate::metrics::HostLabel;

/// The cache of one connection: a browser usually asks one host for many things.
#[derive(Default)]
pub(crate) struct ConnectionCache {
    pub(crate) site: Option<ConnectionSite>,
}

/// A site that one connection caches.
#[derive(Debug)]
pub(crate) struct ConnectionSite {
    /// The host as the client wrote it.
    pub(crate) host: Box<str>,
    pub(crate) host_label: HostLabel,
    pub(crate) site: Arc<Site>,
    pub(crate) validity: Validity,
}

/// Counts the invalidations of a cache.
#[derive(Debug, Default)]
pub(crate) struct Generation(AtomicU64);

/// The time and the generation until which a copied cache entry is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validity {
    pub(crate) until: Instant,
    pub(crate) generation: u64,
}

impl Generation {
    /// Returns the current generation. Read it before the entry that is to be copied: otherwise an invalidation in between
    /// would be missed.
    pub(crate) fn current(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Starts a new generation, which invalidates all copies.
    pub(crate) fn bump(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns whether a copy is still valid.
    pub(crate) fn is_current(&self, validity: Validity, now: Instant) -> bool {
        validity.generation == self.current() && now < validity.until
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_copy_is_valid_until_its_time_or_the_next_invalidation() {
        let (generation, now) = (Generation::default(), Instant::now());
        let later = now + Duration::from_secs(1);
        let validity = Validity { until: later, generation: generation.current() };
        assert!(generation.is_current(validity, now) && !generation.is_current(validity, later));
        generation.bump();
        assert!(!generation.is_current(validity, now));
    }
}
