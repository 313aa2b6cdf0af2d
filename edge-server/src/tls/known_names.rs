//! The names that have a certificate. A flood of handshakes for invented names would need a query for each, because no
//! cache holds them; this list answers all of them from memory, with eight bytes for each name.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Age from which the list is read again, to shed deleted names. New names don't wait for it: the outbox delivers their
/// signal to Redis at least once, and an edge that loses Redis notices within three seconds and clears the list. Only a
/// Redis that splits in two could lose a signal unnoticed, and hide a new name for this long.
const RELOAD_AFTER: Duration = Duration::from_secs(10 * 60);
/// The same while no signals arrive: then a new certificate is found this late, and unknown names still need no query.
const RELOAD_WITHOUT_SIGNALS: Duration = Duration::from_secs(5);
/// Names of one query, so that none takes long enough to look like an outage.
pub(super) const PAGE: usize = 10_000;

/// Digests of the names, once they are loaded.
#[derive(Default)]
pub(super) struct KnownNames {
    names: Mutex<Names>,
    /// With a random key, so that a client can't choose names with the digest of another one.
    hasher: RandomState,
}

#[derive(Default)]
struct Names {
    /// `None` while the list is unknown: then no name is excluded.
    list: Option<List>,
    /// Names that signals have added during a load, which may have missed them. `None` while there is no load.
    added: Option<Vec<u64>>,
    /// Counts the times that the list was cleared, so that no load from before is stored.
    epoch: u64,
    /// No signals arrive, so the list is soon out of date.
    has_no_signals: bool,
}

struct List {
    digests: HashSet<u64>,
    loaded_at: Instant,
}

impl Names {
    fn is_due(&self, now: Instant) -> bool {
        let reload_after = if self.has_no_signals { RELOAD_WITHOUT_SIGNALS } else { RELOAD_AFTER };
        let is_recent = |list: &List| now.saturating_duration_since(list.loaded_at) < reload_after;
        !self.list.as_ref().is_some_and(is_recent)
    }
}

impl KnownNames {
    /// Returns whether a name has no certificate for sure.
    pub(super) fn excludes(&self, name: &str) -> bool {
        let digest = self.hasher.hash_one(name);
        self.lock().list.as_ref().is_some_and(|list| !list.digests.contains(&digest))
    }

    /// Returns whether the list is loaded and has a name.
    pub(super) fn includes(&self, name: &str) -> bool {
        let digest = self.hasher.hash_one(name);
        self.lock().list.as_ref().is_some_and(|list| list.digests.contains(&digest))
    }

    /// Replaces the list, if it is due, by all names and those that were added meanwhile. `load_page` returns up to [`PAGE`]
    /// names in order, from behind a name.
    pub(super) async fn load_if_due<E, F>(
        &self,
        now: Instant,
        load_page: impl Fn(String) -> F,
    ) -> Result<(), E>
    where
        F: Future<Output = Result<Vec<String>, E>>,
    {
        let epoch = {
            let mut names = self.lock();
            if !names.is_due(now) {
                return Ok(());
            }
            names.added = Some(Vec::new());
            names.epoch
        };
        let loaded = self.load_all(load_page).await;
        let mut names = self.lock();
        let added = names.added.take();
        let mut digests = loaded?;
        if names.epoch == epoch {
            digests.extend(added.into_iter().flatten());
            names.list = Some(List { digests, loaded_at: now });
        }
        Ok(())
    }

    async fn load_all<E, F>(&self, load_page: impl Fn(String) -> F) -> Result<HashSet<u64>, E>
    where
        F: Future<Output = Result<Vec<String>, E>>,
    {
        let (mut digests, mut after) = (HashSet::new(), String::new());
        loop {
            let page = load_page(after).await?;
            digests.extend(page.iter().map(|name| self.hasher.hash_one(name.as_str())));
            match page.into_iter().nth(PAGE - 1) {
                Some(last) => after = last,
                None => return Ok(digests),
            }
        }
    }

    /// Adds a name that may have a certificate now.
    pub(super) fn add(&self, name: &str) {
        let digest = self.hasher.hash_one(name);
        let mut names = self.lock();
        if let Some(added) = &mut names.added {
            added.push(digest);
        }
        if let Some(list) = &mut names.list {
            list.digests.insert(digest);
        }
    }

    /// Clears the list: signals were missed.
    pub(super) fn clear(&self) {
        let mut names = self.lock();
        names.list = None;
        names.epoch += 1;
    }

    /// Clears the list when signals arrive again, because some were missed. While none arrive, the list stays and is read
    /// often.
    pub(super) fn set_without_signals(&self, has_no_signals: bool) {
        if !has_no_signals {
            self.clear();
        }
        self.lock().has_no_signals = has_no_signals;
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    async fn load(known: &KnownNames, names: &[&str]) {
        let page = |_| async { Ok::<_, Infallible>(names.iter().map(ToString::to_string).collect()) };
        known.load_if_due(Instant::now(), page).await.unwrap();
    }

    #[tokio::test]
    async fn excludes_only_names_that_are_not_in_a_complete_list() {
        let known = KnownNames::default();
        assert!(!known.excludes("a.test"), "nothing is loaded yet");
        let page = |_| async {
            known.add("new.test");
            Ok::<_, Infallible>(vec!["a.test".to_owned()])
        };
        known.load_if_due(Instant::now(), page).await.unwrap();
        assert_eq!(["a.test", "new.test", "b.test"].map(|name| known.excludes(name)), [false, false, true]);
        known.add("b.test");
        assert!(!known.excludes("b.test"));
        known.clear();
        assert!(!known.excludes("c.test"), "signals were missed");
    }

    #[tokio::test]
    async fn a_load_from_before_missed_signals_is_not_stored() {
        let known = KnownNames::default();
        let page = |_| async {
            known.clear();
            Ok::<_, Infallible>(Vec::new())
        };
        known.load_if_due(Instant::now(), page).await.unwrap();
        assert!(!known.excludes("a.test"));
        let failing = |_| async { Err::<Vec<String>, _>("unavailable") };
        assert!(known.load_if_due(Instant::now(), failing).await.is_err());
        load(&known, &[]).await;
        known.set_without_signals(false);
        assert!(!known.excludes("a.test"), "signals arrive again, and some were missed");
    }

    #[tokio::test]
    async fn while_signals_are_away_the_list_stays_and_is_read_every_few_seconds() {
        let (known, queries, start) = (KnownNames::default(), Cell::new(0), Instant::now());
        let page = |_| {
            queries.set(queries.get() + 1);
            std::future::ready(Ok::<_, Infallible>(vec!["a.test".to_owned()]))
        };
        known.load_if_due(start, page).await.unwrap();
        known.set_without_signals(true);
        for second in 0..=60 {
            assert!(known.excludes("b.test"));
            known.load_if_due(start + Duration::from_secs(second), page).await.unwrap();
        }
        assert_eq!(queries.get(), 13, "the first one, and one every five seconds");
    }

    #[tokio::test]
    async fn a_hundred_thousand_names_are_read_once_in_pages_and_again_only_to_shed_deleted_ones() {
        let all: Vec<String> = (0..100_000).map(|number| format!("{number:06}.example.org")).collect();
        let (known, queries, deleted) = (KnownNames::default(), Cell::new(0), Cell::new(0));
        let page = |after: String| {
            queries.set(queries.get() + 1);
            let from = all.partition_point(|name| *name <= after).max(deleted.get());
            let names = all[from..].iter().take(PAGE).cloned().collect();
            std::future::ready(Ok::<_, Infallible>(names))
        };
        let start = Instant::now();
        known.load_if_due(start, page).await.unwrap();
        assert_eq!(queries.get(), 11, "ten full pages, and one that ends the list");
        assert!(!all.iter().any(|name| known.excludes(name)) && known.excludes("other.example.org"));
        deleted.set(1);
        for second in 1..RELOAD_AFTER.as_secs() {
            known.load_if_due(start + Duration::from_secs(second), page).await.unwrap();
        }
        known.add("new.example.org");
        assert_eq!(queries.get(), 11);
        assert!(!known.excludes(&all[0]) && !known.excludes("new.example.org"));
        known.load_if_due(start + RELOAD_AFTER, page).await.unwrap();
        assert_eq!(queries.get(), 21);
        assert!(known.excludes(&all[0]) && !known.excludes(&all[1]), "the deleted name is shed");
        known.clear();
        known.load_if_due(start + RELOAD_AFTER, page).await.unwrap();
        assert_eq!(queries.get(), 31, "after missed signals it is read at once");
    }
}
