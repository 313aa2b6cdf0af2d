//! The connections of a group in the order in which they became idle.
//!
//! Finding the connection that is idle longest means checking the whole group. A flood of new connections would cause such a
//! check for each, so one check yields a list for many.

use std::time::Instant;

/// The part of a group that one check puts on the list: a sixteenth.
const SHARE: usize = 16;

/// Connections and the start of their idle times. It stays in order without further checks: a connection that was not idle
/// becomes idle after all that were.
#[derive(Default)]
pub(super) struct IdleList(Vec<(Instant, u64)>);

impl IdleList {
    /// Fills the list from a whole group.
    pub(super) fn fill(&mut self, group: impl Iterator<Item = (Instant, u64)>) {
        self.0.clear();
        self.0.extend(group);
        self.0.sort_unstable_by(|one, other| other.cmp(one));
        let listed = self.0.len().div_ceil(SHARE);
        self.0.drain(..self.0.len() - listed);
    }

    /// Removes and returns the connection that is idle longest. `idle_since` returns the start of a connection's idle time
    /// as it is now; a connection that was active meanwhile is skipped.
    pub(super) fn pop(&mut self, mut idle_since: impl FnMut(u64) -> Option<Instant>) -> Option<u64> {
        while let Some((since, id)) = self.0.pop() {
            if idle_since(id) == Some(since) {
                return Some(id);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lists_a_sixteenth_of_a_group_and_skips_connections_that_were_active_meanwhile() {
        let now = Instant::now();
        let since = |id: u64| now + Duration::from_secs(100 - id);
        let mut list = IdleList::default();
        assert_eq!(list.pop(|_| None), None);
        list.fill((0..48).map(|id| (since(id), id)));
        assert_eq!(list.pop(|id| Some(since(id))), Some(47));
        assert_eq!(list.pop(|id| (id != 46).then(|| since(id))), Some(45));
        assert_eq!(list.pop(|id| Some(since(id))), None, "three of 48 were listed");
        list.fill(std::iter::once((now, 7)));
        assert_eq!(list.pop(|_| Some(now)), Some(7), "the only one is listed");
    }
}
