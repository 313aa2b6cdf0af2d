//! Buckets: the intervals of a time series.

use chrono::{DateTime, Datelike as _, NaiveDate, SecondsFormat, TimeDelta, Timelike as _, Utc, Weekday};

use super::{Days, Range, Zone};

/// Maximum number of values in one series.
pub const BUCKETS_MAX: u64 = 2_500;

/// Length of a bucket, by the site's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// A calendar day: 23 or 25 hours long at a change of clocks.
    Day,
    /// A week that begins on Monday.
    Week,
    /// A calendar month.
    Month,
    /// From one full hour of the clock to the next: the hour repeated in autumn has two buckets, and where clocks
    /// move by half an hour one bucket lasts half an hour.
    Hour,
}

/// One interval of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// The first day, or the hour with its offset from UTC.
    pub date: String,
    /// Start and end in UTC.
    pub range: Range,
}

impl Grouping {
    /// Every grouping.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Hour];

    /// Returns the grouping's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Hour => "hour",
        }
    }

    /// Returns a lower bound of the number of buckets in these days.
    pub(super) fn at_least(self, days: Days) -> u64 {
        match self {
            Self::Hour => days.count().saturating_mul(23),
            Self::Day => days.count(),
            Self::Week => days.count() / 7,
            Self::Month => days.count() / 31,
        }
    }

    /// Returns all buckets of these days in order, without gaps; the first and the last are clipped to the days. A
    /// day that the time zone skipped has none.
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

    /// Returns whether a bucket begins on that day.
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

/// Returns the next full hour of the clock after `instant`. Clocks move at full hours, so the hour shown may differ.
fn next_hour(instant: DateTime<Utc>, zone: Zone) -> DateTime<Utc> {
    let clock = instant.with_timezone(&zone);
    instant + TimeDelta::seconds(3600 - i64::from(clock.minute() * 60 + clock.second()))
}
