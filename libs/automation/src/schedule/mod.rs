//! Schedules: cron lines of five fields in a time zone.
//!
//! On daylight-saving days a line fires as in Vixie cron. A fixed time that the clock skips fires once, at the first
//! instant after the gap; a fixed time that occurs twice fires once, the first time. Lines with `*` or steps in minute
//! and hour follow the elapsed time instead: they fire in both passes of a repeated hour, and not in a skipped one.

mod durations;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use crate::definition::CatchUp;

pub use durations::{WAIT_MAX, parse_duration};

/// A schedule that fires at least once.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: Tz,
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

impl Schedule {
    /// Parses a cron line of five fields.
    ///
    /// # Errors
    /// The line is wrong, has another number of fields, or never fires, as on 30 February.
    pub fn parse(cron: &str, zone: Tz) -> Result<Self, ScheduleError> {
        let fields = cron.split_whitespace().count();
        if fields != 5 {
            return Err(ScheduleError::Cron(format!(
                "a cron line has five fields (minute, hour, day of month, month, day of week), this has {fields}"
            )));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let parsed =
            parser.parse(cron).map_err(|error| ScheduleError::Cron(format!("invalid cron line: {error}")))?;
        let schedule = Self { cron: parsed, zone };
        // From a fixed instant, so that the same line is always judged alike. 29 February of a weekday takes 28 years.
        if schedule.next_after(DateTime::UNIX_EPOCH + TimeDelta::days(365 * 30)).is_none() {
            return Err(ScheduleError::Cron("this cron line never fires".to_owned()));
        }
        Ok(schedule)
    }

    /// Returns the first time after an instant at which the schedule fires.
    pub fn next_after(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let next = self.cron.find_next_occurrence(&instant.with_timezone(&self.zone), false).ok()?;
        Some(next.with_timezone(&Utc))
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
        let last = self
            .cron
            .find_previous_occurrence(&now.with_timezone(&self.zone), true)
            .ok()?
            .with_timezone(&Utc);
        let is_due = match catch_up {
            CatchUp::Last => true,
            CatchUp::None => now - last <= tolerance,
        };
        (is_due && last > since && last <= now).then_some(last)
    }
}

#[cfg(test)]
mod tests;
