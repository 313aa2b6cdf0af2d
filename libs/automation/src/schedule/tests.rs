//! Tests of schedules, with both daylight-saving days of 2026 in Berlin (29 March and 25 October) and New York.

use super::*;

fn utc(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn fires(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(cron, parse_zone(zone).unwrap()).unwrap();
    let mut at = utc(from);
    let mut found = Vec::new();
    for _ in 0..count {
        at = schedule.next_after(at).unwrap();
        found.push(at.format("%d %H:%M").to_string());
    }
    found
}

#[test]
fn a_schedule_fires_at_the_local_time() {
    assert_eq!(
        fires("30 7 * * MON-FRI", "Europe/Berlin", "2026-11-20T12:00:00Z", 2),
        ["23 06:30", "24 06:30"]
    );
    assert_eq!(fires("*/15 * * * *", "UTC", "2026-01-01T00:07:30Z", 3), ["01 00:15", "01 00:30", "01 00:45"]);
    assert_eq!(fires("0 9 * * *", "America/New_York", "2026-07-01T00:00:00Z", 1), ["01 13:00"]);
    // An exact fire time is not its own successor.
    assert_eq!(fires("0 0 * * *", "UTC", "2026-01-01T00:00:00Z", 1), ["02 00:00"]);
}

#[test]
fn a_time_that_the_clock_skips_fires_once_after_the_gap() {
    // In Berlin 02:00 becomes 03:00 at 01:00 UTC.
    assert_eq!(fires("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2), ["29 01:00", "30 00:30"]);
    assert_eq!(fires("30 1 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2), ["29 00:30", "29 23:30"]);
    assert_eq!(fires("0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2), ["29 01:00", "30 01:00"]);
    assert_eq!(fires("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", 2), ["08 07:00", "09 06:30"]);
    // An hourly line follows the elapsed time.
    assert_eq!(
        fires("0 * * * *", "Europe/Berlin", "2026-03-28T23:30:00Z", 3),
        ["29 00:00", "29 01:00", "29 02:00"]
    );
}

#[test]
fn a_time_that_occurs_twice_fires_once() {
    // In Berlin 03:00 becomes 02:00 at 01:00 UTC.
    assert_eq!(fires("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2), ["25 00:30", "26 01:30"]);
    assert_eq!(fires("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2), ["01 05:30", "02 06:30"]);
    assert_eq!(
        fires("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", 3),
        ["25 00:00", "25 01:00", "25 02:00"]
    );
}

#[test]
fn a_line_that_never_fires_is_refused() {
    for line in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *"] {
        assert_eq!(
            Schedule::parse(line, Tz::UTC).unwrap_err().to_string(),
            "this cron line never fires",
            "{line}"
        );
    }
    assert!(Schedule::parse("0 0 29 2 *", Tz::UTC).is_ok());
}

#[test]
fn a_line_that_is_no_cron_line_is_refused() {
    for line in [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "a b c d e",
        "@daily",
        "*/0 * * * *",
        "* * 0 * *",
        "* * * 13 *",
    ] {
        assert!(Schedule::parse(line, Tz::UTC).is_err(), "{line} is accepted");
    }
    let error = Schedule::parse("0 0 0 * * *", Tz::UTC).unwrap_err().to_string();
    assert!(error.ends_with("this has 6"), "{error}");
    assert_eq!(parse_zone("Mars/Base"), Err(ScheduleError::Zone("Mars/Base".to_owned())));
    assert!(parse_zone("").is_err() && parse_zone("Europe/Berlin").is_ok());
}

#[test]
fn no_line_fires_more_than_once_a_minute() {
    let schedule = Schedule::parse("* * * * *", Tz::UTC).unwrap();
    let first = schedule.next_after(utc("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(schedule.next_after(first).unwrap() - first, TimeDelta::minutes(1));
}

#[test]
fn missed_times_are_left_out_or_the_last_is_caught_up() {
    let schedule = Schedule::parse("0 * * * *", Tz::UTC).unwrap();
    let since = utc("2026-01-01T00:00:00Z");
    let missed = |now: &str, catch_up| schedule.missed(since, utc(now), catch_up, TimeDelta::minutes(5));
    assert_eq!(missed("2026-01-01T05:30:00Z", CatchUp::None), None);
    assert_eq!(missed("2026-01-01T05:30:00Z", CatchUp::Last), Some(utc("2026-01-01T05:00:00Z")));
    assert_eq!(missed("2026-01-01T05:03:00Z", CatchUp::None), Some(utc("2026-01-01T05:00:00Z")));
    assert_eq!(missed("2026-01-01T05:00:00Z", CatchUp::None), Some(utc("2026-01-01T05:00:00Z")));
    assert_eq!(missed("2026-01-01T00:30:00Z", CatchUp::Last), None);
    assert_eq!(missed("2025-12-31T12:00:00Z", CatchUp::Last), None);
}
