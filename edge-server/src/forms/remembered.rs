//! A form's page as one connection remembers it: whoever asks the same again is sent the same, and the caches, which
//! hold forms and pages apart, are not asked.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use chrono::TimeDelta;

use super::Ready;
use crate::sites::connection_cache::Validity;
use crate::sites::page_lookup::PageRequest;

/// Longer questions are not remembered: what so many connections hold is bounded by this.
const ASKED_BYTES_MAX: usize = 512;

/// A page, and what was asked to see it.
pub(crate) struct Remembered {
    host: Box<str>,
    path: Box<str>,
    query: Box<str>,
    languages: Option<Box<[u8]>>,
    /// Not held here: when the cache lets go of it, so do all connections.
    page: Weak<Ready>,
    pub(super) belief: Validity,
}

impl Remembered {
    /// None if the question is too long.
    pub(super) fn new(
        wanted: &PageRequest<'_>,
        languages: Option<&[u8]>,
        page: &Arc<Ready>,
        belief: Validity,
    ) -> Option<Self> {
        let PageRequest { host, path, query, .. } = *wanted;
        let asked = host.len() + path.len() + query.len() + languages.map_or(0, <[u8]>::len);
        (asked <= ASKED_BYTES_MAX).then(|| Self {
            host: host.into(),
            path: path.into(),
            query: query.into(),
            languages: languages.map(Box::from),
            page: Arc::downgrade(page),
            belief,
        })
    }

    /// The page, if just that is wanted again.
    pub(super) fn page(&self, wanted: &PageRequest<'_>, languages: Option<&[u8]>) -> Option<Arc<Ready>> {
        let is_same = *self.path == *wanted.path
            && *self.host == *wanted.host
            && *self.query == *wanted.query
            && self.languages.as_deref() == languages;
        if is_same { self.page.upgrade() } else { None }
    }
}

/// How much of a time may be gone when the clock is read, which tells milliseconds.
const CLOCK_STEP: Duration = Duration::from_millis(1);

/// The earlier of `until` and the moment at which a form shuts, if any time is `left` until it does; never later than
/// that: from then on the clock is asked.
pub(super) fn shuts_before(until: Instant, now: Instant, left: Option<TimeDelta>) -> Instant {
    let left = left.map(|left| left.to_std().unwrap_or_default().saturating_sub(CLOCK_STEP));
    left.and_then(|left| now.checked_add(left)).map_or(until, |shuts| until.min(shuts))
}
