//! Buckets: how a period is cut into the values of a series.

use chrono::{DateTime, Datelike as _, NaiveDate, SecondsFormat, TimeDelta, Timelike as _, Utc, Weekday};

use super::{Days, Range, Zone};

/// Values of one series.
pub const BUCKETS_MAX: u64 = 2_500;

/// How long a bucket is, by the site's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// A calendar day: 23 or 25 hours where clocks are moved.
    Day,
    /// A week from Monday on.
    Week,
    /// A calendar month.
    Month,
    /// An hour as clocks show it, from one full hour to the next: the one that is repeated in autumn comes twice,
    /// and where clocks are moved by half an hour there is one of half an hour.
    Hour,
}

/// One value's share of a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Its first day, or the hour with its offset from UTC.
    pub date: String,
    /// The instants in it.
    pub range: Range,
}

impl Grouping {
    /// Every grouping.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Hour];

    /// The grouping's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Hour => "hour",
        }
    }

    /// At least so many buckets these days have.
    pub(super) fn at_least(self, days: Days) -> u64 {
        match self {
            Self::Hour => days.count().saturating_mul(23),
            Self::Day => days.count(),
            Self::Week => days.count() / 7,
            Self::Month => days.count() / 31,
        }
    }

    /// The buckets of these days, all of them, in order, without gaps; the first and the last are cut where the
    /// days end. A day that was skipped has none.
    pub(super) fn buckets(self, days: Days, zone: Zone) -> Vec<Bucket> {
        if self == Self::Hour {
            return hours(days.range(zone), zone);
        }
        let mut runs: Vec<Days> = Vec::new();
        for day in days.each() {
            match runs.last_mut() {
                Some(run) if !self.begins_at(day) => run.last = day,
                _ => runs.push(Days { first: day, last: day }),
            }
        }
        let bucket = |run: Days| Bucket { date: run.first.to_string(), range: run.range(zone) };
        runs.into_iter().map(bucket).filter(|bucket| bucket.range.start < bucket.range.end).collect()
    }

    /// Whether a bucket begins with that day.
    fn begins_at(self, day: NaiveDate) -> bool {
        match self {
            Self::Day | Self::Hour => true,
            Self::Week => day.weekday() == Weekday::Mon,
            Self::Month => day.day() == 1,
        }
    }
}

fn hours(range: Range, zone: Zone) -> Vec<Bucket> {
    let mut buckets = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let end = next_hour(start, zone).min(range.end);
        let date = start.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Secs, false);
        buckets.push(Bucket { date, range: Range { start, end } });
        start = end;
    }
    buckets
}

/// When the clock that runs at `instant` shows the next full hour. Clocks are moved at full hours, so that it may
/// show another time by then.
fn next_hour(instant: DateTime<Utc>, zone: Zone) -> DateTime<Utc> {
    let clock = instant.with_timezone(&zone);
    instant + TimeDelta::seconds(3600 - i64::from(clock.minute() * 60 + clock.second()))
}
