//! The range of valid timestamps: the years 1970 to 9999. Postgres can't store all that chrono can represent. Also reads
//! the times that people write without a time zone.

use chrono::{DateTime, Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

use crate::FieldError;

/// The first second of the year 10000.
const END: i64 = 253_402_300_800;

/// Regular expression of the beginning of a valid timestamp.
pub const PATTERN: &str = "^(19[7-9][0-9]|[2-9][0-9]{3})-";

/// Returns whether `at` lies between 1970 and 9999.
pub fn is_known(at: DateTime<Utc>) -> bool {
    (0..END).contains(&at.timestamp())
}

/// Validates a timestamp given as `field`.
pub fn check(field: &str, at: Option<DateTime<Utc>>) -> Option<FieldError> {
    let message = || format!("{field} must lie between the years 1970 and 9999 (UTC)");
    at.is_some_and(|at| !is_known(at)).then(|| FieldError::new(field, "range", message()))
}

/// Formats of a time with an offset but without seconds, which RFC 3339 does not have.
const SHORT_WITH_OFFSET: [&str; 2] = ["%Y-%m-%dT%H:%M%#z", "%Y-%m-%d %H:%M%#z"];
/// Formats of a time without an offset. Browsers send the first one from `datetime-local`.
const LOCAL: [&str; 4] = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f"];

/// Parses the time in `text`: an instant with its offset, or a time or a day of the wall clock in `zone`. A day stands for
/// its start. A time that the clock shows twice is the earlier instant; one that it skips is the later one, as if the
/// clock had not been changed yet.
pub fn parse_in(zone: Tz, text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    let with_offset = text.parse::<DateTime<Utc>>().ok().or_else(|| {
        let short = |format: &&str| DateTime::parse_from_str(text, format).ok();
        SHORT_WITH_OFFSET.iter().find_map(short).map(|at| at.to_utc())
    });
    with_offset.or_else(|| {
        let time = |format: &&str| NaiveDateTime::parse_from_str(text, format).ok();
        let day = || text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0);
        let local = LOCAL.iter().find_map(time).or_else(day)?;
        instant(zone, Some(local).filter(|local| (1..10_000).contains(&local.year()))?)
    })
}

/// Returns the message for a text in `field` that [`parse_in`] does not understand.
pub fn unreadable(field: &str, zone: Tz) -> FieldError {
    let message = format!(
        "{field} must be a day or a time, such as 2030-01-31, 2030-01-31T18:00 (both in the time zone of your account, \
         {zone}) or 2030-01-31T18:00:00Z"
    );
    FieldError::new(field, "format", message)
}

fn instant(zone: Tz, local: NaiveDateTime) -> Option<DateTime<Utc>> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.to_utc()),
        LocalResult::None => {
            // No clock is changed twice within a day and a half, and none is more than 14 hours ahead of UTC: the offset
            // at this instant is the one before the change.
            let earlier = local.checked_sub_days(Days::new(1))?;
            let before = zone.offset_from_utc_datetime(&earlier).fix();
            Some(local.checked_sub_offset(before)?.and_utc())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_an_offset_is_one_of_the_wall_clock() {
        let read = |zone: Tz, text: &str| parse_in(zone, text).map(|at| at.to_rfc3339());
        for (zone, text, instant) in [
            (Tz::Europe__Berlin, "2030-01-01", "2029-12-31T23:00:00+00:00"),
            (Tz::Europe__Berlin, "2030-01-01T10:00", "2030-01-01T09:00:00+00:00"),
            (Tz::Europe__Berlin, " 2030-07-01 10:00:30.5 ", "2030-07-01T08:00:30.500+00:00"),
            (Tz::UTC, "2030-01-01T10:00", "2030-01-01T10:00:00+00:00"),
            // With an offset, the zone does not matter.
            (Tz::Europe__Berlin, "2030-01-01T10:00:00Z", "2030-01-01T10:00:00+00:00"),
            (Tz::Europe__Berlin, "2030-01-01T10:00:00+05:30", "2030-01-01T04:30:00+00:00"),
            (Tz::Europe__Berlin, "2030-01-01T10:00Z", "2030-01-01T10:00:00+00:00"),
            (Tz::Europe__Berlin, "2030-01-01 10:00-03:00", "2030-01-01T13:00:00+00:00"),
            // Skipped: the later of the two readings, 03:30 of summer time.
            (Tz::Europe__Berlin, "2027-03-28T02:30", "2027-03-28T01:30:00+00:00"),
            (Tz::Australia__Lord_Howe, "2026-10-04T02:15", "2026-10-03T15:45:00+00:00"),
            // A midnight that was skipped, and a day.
            (Tz::America__Sao_Paulo, "2018-11-04", "2018-11-04T03:00:00+00:00"),
            (Tz::Pacific__Apia, "2011-12-30T10:00", "2011-12-30T20:00:00+00:00"),
            // Twice: the earlier instant.
            (Tz::Europe__Berlin, "2027-10-31T02:30", "2027-10-31T00:30:00+00:00"),
            (Tz::America__New_York, "2026-11-01T01:30", "2026-11-01T05:30:00+00:00"),
        ] {
            assert_eq!(read(zone, text).as_deref(), Some(instant), "{zone} {text}");
        }
        for wrong in
            ["", "soon", "2030", "2030-02-30", "2030-01-01T25:00", "10:00", "01/31/2030", "1893456000"]
        {
            assert_eq!(read(Tz::Europe__Berlin, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn years_of_four_digits_are_valid() {
        for (text, known) in [
            ("1970-01-01T00:00:00Z", true),
            ("9999-12-31T23:59:59.999999Z", true),
            ("1969-12-31T23:59:59Z", false),
            ("9999-12-31T23:59:59-00:01", false),
            ("+200000-01-01T00:00:00Z", false),
            ("-0001-01-01T00:00:00Z", false),
        ] {
            let at = text.parse().unwrap();
            assert_eq!(is_known(at), known, "{text}");
            assert_eq!(check("closesAt", Some(at)).is_none(), known, "{text}");
        }
        assert_eq!(check("closesAt", None), None);
    }
}
