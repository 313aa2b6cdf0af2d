//! Splits a range at a past midnight: visits before it are settled and their sums worth caching, later ones are not.
//!
//! A visit belongs to the day (UTC) it began on, with all its events, and no id of a visitor is used on two days. So all
//! sums of the sections add up, even counts of distinct visitors: `docs/0003-sums-of-settled-days.md`.

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveTime, TimeDelta, Utc};
use domain::analytics::Range;

use crate::analytics::statement::{Bound, Statement, VISIT_MAX};

/// How long after midnight the day before counts as settled. Visits that continue over midnight have mostly ended by then.
const SETTLED_AFTER: TimeDelta = TimeDelta::hours(6);

/// A range, and which visits of it are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::analytics) struct Section {
    pub(in crate::analytics) range: Range,
    began: Began,
}

/// When the visits began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    AtAnyTime,
    Before(DateTime<Utc>),
    Since(DateTime<Utc>),
}

impl Section {
    /// All visits that overlap the range.
    pub(in crate::analytics) fn all(range: Range) -> Self {
        Self { range, began: Began::AtAnyTime }
    }

    /// Binds the range of visits that began in the section.
    pub(in crate::analytics) fn bind_visits(self, statement: &mut Statement) {
        statement.bind_range(self.range);
        let earliest = self.range.start - VISIT_MAX;
        match self.began {
            Began::AtAnyTime => {}
            Began::Before(midnight) => statement.bind_began(Range { start: earliest, end: midnight }),
            Began::Since(midnight) => statement.bind_began(Range { start: midnight, end: self.range.end }),
        }
    }

    /// Binds the range of events that are counted without their visit.
    pub(in crate::analytics) fn bind_events(self, statement: &mut Statement) {
        statement.bind_range(match self.began {
            Began::Before(midnight) => Range { start: self.range.start, end: midnight },
            Began::AtAnyTime | Began::Since(_) => self.range,
        });
    }

    /// Binds the range of events with their visitor's first id, and returns the `WHERE`: those with a visit that began in
    /// the section. Events of the day after midnight that belong to a visit over midnight are of the day before.
    pub(in crate::analytics) fn bind_first_ids(self, statement: &mut Statement) -> &'static str {
        statement.bind_range(self.range);
        if let Began::Before(midnight) | Began::Since(midnight) = self.began {
            statement.bind("midnight", Bound::Time(midnight));
            statement.bind("next_midnight", Bound::Time(midnight + TimeDelta::days(1)));
        }
        match self.began {
            Began::AtAnyTime => "",
            Began::Before(_) => {
                " WHERE received_at < {midnight:DateTime64(3, 'UTC')} OR (received_at <= until \
                 AND received_at < {next_midnight:DateTime64(3, 'UTC')})"
            }
            Began::Since(_) => {
                " WHERE received_at > until OR received_at >= {next_midnight:DateTime64(3, 'UTC')}"
            }
        }
    }
}

/// The sections of a range. At least one is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sections {
    pub(super) settled: Option<Section>,
    pub(super) recent: Option<Section>,
}

/// Returns the midnight (UTC) before which visits are settled.
pub(super) fn settled_until(now: DateTime<Utc>) -> DateTime<Utc> {
    (now - SETTLED_AFTER).with_time(NaiveTime::MIN).single().unwrap_or(now)
}

/// Returns the first day of the month in which visits of a range that begins at `start` may have begun.
pub(super) fn first_of_month(start: DateTime<Utc>) -> NaiveDate {
    let earliest = (start - VISIT_MAX).date_naive();
    earliest.with_day(1).unwrap_or(earliest)
}

impl Sections {
    pub(super) fn of(range: Range, now: DateTime<Utc>) -> Self {
        let midnight = settled_until(now);
        if range.start >= midnight {
            return Self { settled: None, recent: Some(Section::all(range)) };
        }
        if range.end <= midnight {
            return Self { settled: Some(Section::all(range)), recent: None };
        }
        // No visit from before midnight has events later than this.
        let end = range.end.min(midnight + VISIT_MAX);
        let settled = Section { range: Range { start: range.start, end }, began: Began::Before(midnight) };
        let recent =
            Section { range: Range { start: midnight, end: range.end }, began: Began::Since(midnight) };
        Self { settled: Some(settled), recent: Some(recent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        format!("2026-11-{text}Z").parse().unwrap()
    }

    fn range(start: &str, end: &str) -> Range {
        Range { start: at(start), end: at(end) }
    }

    #[test]
    fn a_day_is_settled_six_hours_after_its_end() {
        assert_eq!(settled_until(at("20T05:59:59")), at("19T00:00:00"));
        assert_eq!(settled_until(at("20T06:00:00")), at("20T00:00:00"));
        assert_eq!(settled_until(at("20T23:59:59")), at("20T00:00:00"));
    }

    #[test]
    fn a_range_on_one_side_of_midnight_is_one_section() {
        let now = at("20T12:00:00");
        let (past, today) = (range("01T05:00:00", "20T00:00:00"), range("20T00:00:00", "21T00:00:00"));
        assert_eq!(Sections::of(past, now), Sections { settled: Some(Section::all(past)), recent: None });
        assert_eq!(Sections::of(today, now), Sections { settled: None, recent: Some(Section::all(today)) });
    }

    #[test]
    fn the_settled_section_stays_the_same_all_day() {
        let settled =
            |now: &str, end: &str| Sections::of(range("01T00:00:00", end), at(now)).settled.unwrap();
        let noon = settled("20T12:00:00", "22T00:00:00");
        assert_eq!(noon.range, range("01T00:00:00", "21T01:00:00"));
        assert_eq!(settled("21T05:30:00", "23T00:00:00"), noon);
        assert_ne!(settled("21T06:00:00", "23T00:00:00"), noon);
        // Later events of visits over midnight are not of the range.
        assert_eq!(settled("20T12:00:00", "20T05:00:00").range, range("01T00:00:00", "20T05:00:00"));
    }

    #[test]
    fn months_with_visits_of_a_range_begin_a_visit_earlier() {
        let first = |at: &str| first_of_month(at.parse().unwrap()).to_string();
        assert_eq!(first("2026-11-20T00:00:00Z"), "2026-11-01");
        assert_eq!(first("2026-11-02T01:00:00Z"), "2026-11-01");
        assert_eq!(first("2026-11-02T00:59:59Z"), "2026-10-01");
    }
}
