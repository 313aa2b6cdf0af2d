//! Persons: the ids of one visitor over several days, joined by what events soon after midnight say.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Days, NaiveDate, Utc};
use uuid::Uuid;

/// One visitor's id for one day (UTC), on one site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id {
    pub(super) day: NaiveDate,
    pub(super) site: Uuid,
    pub(super) visitor: u64,
}

/// Which id was whose the day before, and the day after.
#[derive(Debug, Default)]
pub(super) struct VisitorLinks {
    before: HashMap<Id, Id>,
    after: HashMap<Id, Id>,
}

impl Id {
    /// The id of whoever sent an event then.
    pub(super) fn at(site: Uuid, visitor: u64, then: DateTime<Utc>) -> Self {
        Self { day: then.date_naive(), site, visitor }
    }

    /// One of the day before.
    pub(super) fn before(self, previous: u64) -> Self {
        Self { day: self.day.checked_sub_days(Days::new(1)).unwrap_or(self.day), visitor: previous, ..self }
    }
}

impl VisitorLinks {
    pub(super) fn add(&mut self, id: Id, previous: u64) {
        if previous != 0 {
            self.before.insert(id, id.before(previous));
            self.after.insert(id.before(previous), id);
        }
    }

    pub(super) fn before(&self, id: Id) -> Option<Id> {
        self.before.get(&id).copied()
    }

    pub(super) fn after(&self, id: Id) -> Option<Id> {
        self.after.get(&id).copied()
    }

    /// The first id of the person, of those `known`.
    pub(super) fn first(&self, id: Id, known: &HashSet<Id>) -> Id {
        let mut first = id;
        while let Some(before) = self.before(first).filter(|before| known.contains(before)) {
            first = before;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(day: u64) -> Id {
        Id { day: NaiveDate::default() + Days::new(day), site: Uuid::nil(), visitor: day * 10 }
    }

    #[test]
    fn a_person_begins_with_the_earliest_known_id() {
        let mut links = VisitorLinks::default();
        for day in 2..=5 {
            links.add(id(day), id(day - 1).visitor);
        }
        links.add(id(9), 0);
        let known = HashSet::from([3, 4, 5, 9].map(id));
        assert_eq!(links.first(id(5), &known), id(3));
        assert_eq!(links.before(id(3)), Some(id(2)));
        assert_eq!(links.first(id(9), &known), id(9));
        assert_eq!((links.after(id(4)), links.after(id(5))), (Some(id(5)), None));
    }
}
