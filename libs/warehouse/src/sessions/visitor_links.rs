//! Links between the daily ids of one visitor, from events soon after midnight.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Days, NaiveDate, Utc};
use uuid::Uuid;

/// A visitor's id on one site for one day (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DailyId {
    pub(super) day: NaiveDate,
    pub(super) site: Uuid,
    pub(super) visitor: u64,
}

/// The id of the day before and of the day after, by id.
#[derive(Debug, Default)]
pub(super) struct VisitorLinks {
    before: HashMap<DailyId, DailyId>,
    after: HashMap<DailyId, DailyId>,
}

impl DailyId {
    /// The id of an event at that time.
    pub(super) fn at(site: Uuid, visitor: u64, time: DateTime<Utc>) -> Self {
        Self { day: time.date_naive(), site, visitor }
    }

    /// The visitor's id of the day before, if it is `previous`.
    pub(super) fn before(self, previous: u64) -> Self {
        Self { day: self.day.checked_sub_days(Days::new(1)).unwrap_or(self.day), visitor: previous, ..self }
    }
}

impl VisitorLinks {
    pub(super) fn add(&mut self, id: DailyId, previous: u64) {
        if previous != 0 {
            self.before.insert(id, id.before(previous));
            self.after.insert(id.before(previous), id);
        }
    }

    pub(super) fn before(&self, id: DailyId) -> Option<DailyId> {
        self.before.get(&id).copied()
    }

    pub(super) fn after(&self, id: DailyId) -> Option<DailyId> {
        self.after.get(&id).copied()
    }

    /// Follows the links back to the earliest id in `loaded`.
    pub(super) fn first(&self, id: DailyId, loaded: &HashSet<DailyId>) -> DailyId {
        let mut first = id;
        while let Some(before) = self.before(first).filter(|before| loaded.contains(before)) {
            first = before;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(day: u64) -> DailyId {
        DailyId { day: NaiveDate::default() + Days::new(day), site: Uuid::nil(), visitor: day * 10 }
    }

    #[test]
    fn links_lead_to_the_earliest_loaded_id() {
        let mut links = VisitorLinks::default();
        for day in 2..=5 {
            links.add(id(day), id(day - 1).visitor);
        }
        links.add(id(9), 0);
        let loaded = HashSet::from([3, 4, 5, 9].map(id));
        assert_eq!(links.first(id(5), &loaded), id(3));
        assert_eq!(links.before(id(3)), Some(id(2)));
        assert_eq!(links.first(id(9), &loaded), id(9));
        assert_eq!((links.after(id(4)), links.after(id(5))), (Some(id(5)), None));
    }
}
