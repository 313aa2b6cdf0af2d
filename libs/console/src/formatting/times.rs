//! Times in the account's time zone, in words relative to today.

use chrono::{DateTime, Datelike, NaiveDate, TimeZone, Utc};
use chrono_tz::Tz;

/// The current time and the zone in which a page shows times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wall {
    pub(crate) now: DateTime<Utc>,
    pub(crate) zone: Tz,
}

impl Wall {
    /// Returns a time in words: `today at 14:02`, `yesterday at 9:10`, `12 Nov at 14:02`, `12 Nov 2025`.
    pub(crate) fn moment(self, at: DateTime<Utc>) -> String {
        let local = at.with_timezone(&self.zone);
        let clock = local.format("%-H:%M");
        match self.days_ago(local.date_naive()) {
            0 => format!("today at {clock}"),
            1 => format!("yesterday at {clock}"),
            -1 => format!("tomorrow at {clock}"),
            _ if local.year() == self.today().year() => format!("{} at {clock}", local.format("%-d %b")),
            _ => local.format("%-d %b %Y").to_string(),
        }
    }

    /// Returns a time as short as a list needs: `14:02`, `Yesterday`, `12 Nov`, `12 Nov 2025`.
    pub(crate) fn brief(self, at: DateTime<Utc>) -> String {
        let local = at.with_timezone(&self.zone);
        match self.days_ago(local.date_naive()) {
            0 => local.format("%-H:%M").to_string(),
            1 => "Yesterday".to_owned(),
            _ => self.day(local.date_naive()),
        }
    }

    /// Returns a day: `12 Nov`, with the year if it is another.
    pub(crate) fn day(self, day: NaiveDate) -> String {
        let pattern = if day.year() == self.today().year() { "%-d %b" } else { "%-d %b %Y" };
        day.format(pattern).to_string()
    }

    pub(crate) fn today(self) -> NaiveDate {
        self.zone.from_utc_datetime(&self.now.naive_utc()).date_naive()
    }

    fn days_ago(self, day: NaiveDate) -> i64 {
        (self.today() - day).num_days()
    }
}

/// Returns the time of an RFC 3339 text.
pub(crate) fn parse(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_at_midnight_of_the_zone() {
        let wall = |zone: Tz| Wall { now: parse("2026-11-22T23:30:00Z").unwrap(), zone };
        let at = |text: &str| parse(text).unwrap();
        let (utc, berlin) = (wall(Tz::UTC), wall(Tz::Europe__Berlin));
        assert_eq!(utc.moment(at("2026-11-22T13:02:11Z")), "today at 13:02");
        assert_eq!(berlin.moment(at("2026-11-22T13:02:11Z")), "yesterday at 14:02");
        assert_eq!(berlin.brief(at("2026-11-22T23:05:00Z")), "0:05");
        assert_eq!(utc.moment(at("2026-10-01T08:00:00Z")), "1 Oct at 8:00");
        assert_eq!(utc.moment(at("2025-10-01T08:00:00Z")), "1 Oct 2025");
        assert_eq!(utc.brief(at("2026-11-21T00:00:00Z")), "Yesterday");
    }
}
