//! Functions of dates, which are RFC 3339 texts in UTC.

use std::fmt::Write as _;

use chrono::{
    DateTime, Days, LocalResult, Months, NaiveDate, NaiveDateTime, Offset, SecondsFormat, TimeDelta,
    TimeZone, Utc,
};
use chrono_tz::Tz;
use rhai::Dynamic;

use super::arguments::{Outcome, text, whole};

/// Maximum length of a format.
const FORMAT_MAX: usize = 200;

fn zone(argument: Option<&&Dynamic>) -> Result<Tz, String> {
    let Some(argument) = argument.filter(|argument| !argument.is_unit()) else { return Ok(Tz::UTC) };
    let name = text(argument)?;
    name.parse().map_err(|_| "unknown time zone; write one such as Europe/Berlin".to_owned())
}

/// Finds the instant of a wall clock time. A time that the clock skips is read with the offset before the gap, and the
/// first of two equal times is taken.
fn instant(naive: NaiveDateTime, zone: Tz) -> Option<DateTime<Utc>> {
    match zone.from_local_datetime(&naive) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.with_timezone(&Utc)),
        LocalResult::None => {
            let before =
                zone.from_local_datetime(&naive.checked_sub_signed(TimeDelta::hours(3))?).earliest()?;
            before.checked_add_signed(TimeDelta::hours(3)).map(|at| at.with_timezone(&Utc))
        }
    }
}

fn parse(value: &Dynamic, zone: Tz) -> Result<DateTime<Utc>, String> {
    if let Ok(seconds) = value.as_int() {
        return DateTime::from_timestamp(seconds, 0)
            .ok_or_else(|| "the Unix seconds are out of range".to_owned());
    }
    let text = text(value)?;
    let text = text.trim();
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.with_timezone(&Utc));
    }
    let naive = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .or_else(|| {
            NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|day| day.and_hms_opt(0, 0, 0))
        });
    naive.and_then(|naive| instant(naive, zone)).ok_or_else(|| {
        "a date is needed, such as 2026-11-23, 2026-11-23T08:30:00Z or Unix seconds".to_owned()
    })
}

fn shown(at: DateTime<Utc>) -> Outcome {
    Ok(at.to_rfc3339_opts(SecondsFormat::AutoSi, true).into())
}

pub(super) fn date(arguments: &[&Dynamic]) -> Outcome {
    shown(parse(arguments[0], zone(arguments.get(1))?)?)
}

pub(super) fn unix(arguments: &[&Dynamic]) -> Outcome {
    Ok(parse(arguments[0], Tz::UTC)?.timestamp().into())
}

fn seconds_of(unit: &str) -> Option<i64> {
    Some(match unit.strip_suffix('s').unwrap_or(unit) {
        "second" => 1,
        "minute" => 60,
        "hour" => 3_600,
        "day" => 86_400,
        "week" => 604_800,
        _ => return None,
    })
}

pub(super) fn date_add(arguments: &[&Dynamic]) -> Outcome {
    let zone = zone(arguments.get(3))?;
    let (at, amount, unit) = (parse(arguments[0], zone)?, whole(arguments[1])?, text(arguments[2])?);
    let too_far = || "the date is out of range".to_owned();
    let count = u32::try_from(amount.unsigned_abs()).map_err(|_| too_far())?;
    // Days and longer units keep the time of the wall clock.
    let offset = zone.offset_from_utc_datetime(&at.naive_utc()).fix();
    // `naive_local` panics at the calendar's end.
    let local = at.naive_utc().checked_add_offset(offset).ok_or_else(too_far)?;
    let months = |months: Option<u32>| {
        let months = Months::new(months?);
        if amount < 0 { local.checked_sub_months(months) } else { local.checked_add_months(months) }
    };
    let days = |days: u64| {
        let days = Days::new(days);
        if amount < 0 { local.checked_sub_days(days) } else { local.checked_add_days(days) }
    };
    let moved = match unit.strip_suffix('s').unwrap_or(&unit) {
        "day" => days(u64::from(count)),
        "week" => days(u64::from(count) * 7),
        "month" => months(Some(count)),
        "year" => months(count.checked_mul(12)),
        short => {
            let seconds = seconds_of(short)
                .ok_or("the unit is one of seconds, minutes, hours, days, weeks, months, years")?;
            let delta = amount.checked_mul(seconds).and_then(TimeDelta::try_seconds).ok_or_else(too_far)?;
            return shown(at.checked_add_signed(delta).ok_or_else(too_far)?);
        }
    };
    shown(moved.and_then(|naive| instant(naive, zone)).ok_or_else(too_far)?)
}

pub(super) fn date_diff(arguments: &[&Dynamic]) -> Outcome {
    let (from, to, unit) =
        (parse(arguments[0], Tz::UTC)?, parse(arguments[1], Tz::UTC)?, text(arguments[2])?);
    let seconds = seconds_of(&unit).ok_or("the unit is one of seconds, minutes, hours, days, weeks")?;
    Ok(((to - from).num_seconds() / seconds).into())
}

pub(super) fn date_format(arguments: &[&Dynamic]) -> Outcome {
    let (zone, format) = (zone(arguments.get(2))?, text(arguments[1])?);
    if format.len() > FORMAT_MAX {
        return Err(format!("a format may have at most {FORMAT_MAX} bytes"));
    }
    let at = parse(arguments[0], zone)?.with_timezone(&zone);
    let mut shown = String::new();
    // chrono's `to_string` panics at an unknown specifier.
    write!(shown, "{}", at.format(&format))
        .map_err(|_| "the format has an unknown `%` specifier".to_owned())?;
    Ok(shown.into())
}
