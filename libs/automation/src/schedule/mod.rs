//! Schedules: cron lines of five fields in a time zone.
//!
//! A line whose hour has no `*` names times of the wall clock, and each of them fires once a day. One that the clock
//! skips fires at the first instant after the gap, and several of them together fire once there. One that occurs twice
//! fires the first time only. A line with `*` in its hour follows the elapsed time instead: it fires in both passes of a
//! repeated hour, and not in a skipped one.

mod durations;
mod wall_clock;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use crate::definition::CatchUp;

pub use durations::{WAIT_MAX, parse_duration};

/// Maximum length of a cron line.
const LINE_BYTES_MAX: usize = 200;

/// A schedule that fires at least once.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: Tz,
    /// Whether the line names times of the wall clock.
    is_fixed: bool,
}

/// Why a schedule is refused, as a sentence for its author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The cron line is wrong.
    #[error("{0}")]
    Cron(String),
    /// The time zone is unknown.
    #[error("there is no time zone {0}; write one such as Europe/Berlin")]
    Zone(String),
}

/// Parses the name of a time zone, such as `Europe/Berlin`.
///
/// # Errors
/// The tz database has no zone of that name.
pub fn parse_zone(name: &str) -> Result<Tz, ScheduleError> {
    name.parse().map_err(|_| ScheduleError::Zone(name.chars().take(64).collect()))
}

/// Parses an RFC 3339 timestamp.
pub(crate) fn parse_timestamp(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text.trim()).ok().map(|parsed| parsed.to_utc())
}

impl Schedule {
    /// Parses a cron line of five fields.
    ///
    /// # Errors
    /// The line is wrong, has another number of fields, or never fires, as on 30 February.
    pub fn parse(cron: &str, zone: Tz) -> Result<Self, ScheduleError> {
        let refuse = |message: String| Err(ScheduleError::Cron(message));
        if cron.len() > LINE_BYTES_MAX {
            return refuse(format!("a cron line has at most {LINE_BYTES_MAX} characters"));
        }
        if cron.trim_start().starts_with('@') {
            return refuse(format!("write five fields instead of {}, such as `0 7 * * *`", cron.trim()));
        }
        let fields: Vec<&str> = cron.split_whitespace().collect();
        let &[_, hour, _, _, _] = &fields[..] else {
            return refuse(format!(
                "a cron line has five fields (minute, hour, day of month, month, day of week), this has {}",
                fields.len()
            ));
        };
        // An empty element is an empty set for croner, and the search for its next time takes seconds.
        if fields.iter().any(|field| field.split(',').any(str::is_empty)) {
            return refuse("invalid cron line: a list has an empty element".to_owned());
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let parsed =
            parser.parse(cron).map_err(|error| ScheduleError::Cron(format!("invalid cron line: {error}")))?;
        let schedule = Self { cron: parsed, zone, is_fixed: !hour.contains(['*', '?']) };
        // From a fixed instant, so that the same line is always judged alike. 29 February of a weekday takes 28 years.
        if schedule.next_after(DateTime::UNIX_EPOCH + TimeDelta::days(365 * 30)).is_none() {
            return refuse("this cron line never fires".to_owned());
        }
        Ok(schedule)
    }

    /// Returns the first time after an instant at which the schedule fires.
    pub fn next_after(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        if self.is_fixed {
            return wall_clock::next_after(&self.cron, self.zone, instant);
        }
        let next = self.cron.find_next_occurrence(&instant.with_timezone(&self.zone), false).ok()?;
        Some(next.with_timezone(&Utc))
    }

    /// Returns the last time at which the schedule fired, until and with an instant.
    fn last_until(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let instant = instant.trunc_subsecs(0);
        if self.is_fixed {
            return wall_clock::last_until(&self.cron, self.zone, instant);
        }
        let last = self.cron.find_previous_occurrence(&instant.with_timezone(&self.zone), true).ok()?;
        Some(last.with_timezone(&Utc))
    }

    /// Returns the time that is due at `now`, if the last one that was handled is `since`. Of several that passed, all
    /// but the last are left out; with [`CatchUp::None`] also that one, if it is more than `tolerance` ago.
    pub fn missed(
        &self,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
        catch_up: CatchUp,
        tolerance: TimeDelta,
    ) -> Option<DateTime<Utc>> {
        let last = self.last_until(now)?;
        let is_due = match catch_up {
            CatchUp::Last => true,
            CatchUp::None => now - last <= tolerance,
        };
        (is_due && last > since && last <= now).then_some(last)
    }
}

#[cfg(test)]
mod tests;
