//! The names that have a certificate. A flood of handshakes for invented names would need a query for each, because no
//! cache holds them; this list answers all of them from memory, with eight bytes for each name.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    digests: Option<HashSet<u64>>,
    /// Names that signals have added during a load, which may have missed them.
    added: Vec<u64>,
    /// Counts the times that the list was cleared, so that no load from before is stored.
    epoch: u64,
    /// No signals arrive, so a list would soon be out of date.
    is_paused: bool,
}

impl KnownNames {
    /// Returns whether a name has no certificate for sure.
    pub(super) fn excludes(&self, name: &str) -> bool {
        let digest = self.hasher.hash_one(name);
        self.lock().digests.as_ref().is_some_and(|digests| !digests.contains(&digest))
    }

    /// Replaces the list by what `load` returns, and the names that were added meanwhile.
    pub(super) async fn load<E>(&self, load: impl Future<Output = Result<Vec<String>, E>>) -> Result<(), E> {
        let epoch = {
            let mut names = self.lock();
            names.added.clear();
            if names.is_paused {
                return Ok(());
            }
            names.epoch
        };
        let loaded = load.await?;
        let mut digests: HashSet<u64> =
            loaded.iter().map(|name| self.hasher.hash_one(name.as_str())).collect();
        let mut names = self.lock();
        if names.epoch == epoch {
            digests.extend(names.added.drain(..));
            names.digests = Some(digests);
        }
        Ok(())
    }

    /// Adds a name that may have a certificate now.
    pub(super) fn add(&self, name: &str) {
        let digest = self.hasher.hash_one(name);
        let mut names = self.lock();
        names.added.push(digest);
        if let Some(digests) = &mut names.digests {
            digests.insert(digest);
        }
    }

    /// Forgets the list: signals were missed.
    pub(super) fn clear(&self) {
        let mut names = self.lock();
        names.digests = None;
        names.epoch += 1;
    }

    /// Forgets the list, and loads no other one while `is_paused`.
    pub(super) fn pause(&self, is_paused: bool) {
        self.clear();
        self.lock().is_paused = is_paused;
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[tokio::test]
    async fn excludes_only_names_that_are_not_in_a_complete_list() {
        let known = KnownNames::default();
        assert!(!known.excludes("a.test"), "nothing is loaded yet");
        let load = async {
            known.add("new.test");
            Ok::<_, Infallible>(vec!["a.test".to_owned()])
        };
        known.load(load).await.unwrap();
        assert_eq!(["a.test", "new.test", "b.test"].map(|name| known.excludes(name)), [false, false, true]);
        known.add("b.test");
        assert!(!known.excludes("b.test"));
        known.clear();
        assert!(!known.excludes("c.test"), "signals were missed");
    }

    #[tokio::test]
    async fn a_load_from_before_missed_signals_is_not_stored() {
        let known = KnownNames::default();
        let load = async {
            known.clear();
            Ok::<_, Infallible>(Vec::new())
        };
        known.load(load).await.unwrap();
        assert!(!known.excludes("a.test"));
        assert!(known.load(async { Err::<Vec<String>, _>("away") }).await.is_err());
        for (is_paused, is_excluded) in [(true, false), (false, true)] {
            known.pause(is_paused);
            known.load(async { Ok::<_, Infallible>(Vec::new()) }).await.unwrap();
            assert_eq!(known.excludes("a.test"), is_excluded);
        }
    }
}
