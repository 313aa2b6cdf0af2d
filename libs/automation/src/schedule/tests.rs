//! Tests of schedules, with the daylight-saving days of 2026 in Berlin (29 March and 25 October), New York (8 March and
//! 1 November) and on Lord Howe Island (5 April and 4 October), whose clock moves by half an hour.

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
fn several_times_that_the_clock_skips_fire_once_together() {
    // Lists and ranges of hours name times of the wall clock too.
    let from = "2026-03-28T12:00:00Z";
    assert_eq!(fires("0,30 2 * * *", "Europe/Berlin", from, 3), ["29 01:00", "30 00:00", "30 00:30"]);
    assert_eq!(fires("0 2,3 * * *", "Europe/Berlin", from, 3), ["29 01:00", "30 00:00", "30 01:00"]);
    assert_eq!(fires("*/20 2 * * *", "Europe/Berlin", from, 2), ["29 01:00", "30 00:00"]);
    assert_eq!(fires("30 1-3 * * *", "Europe/Berlin", from, 3), ["29 00:30", "29 01:00", "29 01:30"]);
    // Cairo skips the first hour of the day, so the time after the gap is still of that day.
    assert_eq!(fires("30 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", 2), ["23 22:00", "24 21:30"]);
    // Samoa had no 30 December 2011.
    assert_eq!(fires("0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", 1), ["30 10:00"]);
}

#[test]
fn several_times_that_occur_twice_fire_once_each() {
    let from = "2026-10-24T12:00:00Z";
    assert_eq!(
        fires("0,30 2 * * *", "Europe/Berlin", from, 4),
        ["25 00:00", "25 00:30", "26 01:00", "26 01:30"]
    );
    assert_eq!(fires("0 2,3 * * *", "Europe/Berlin", from, 3), ["25 00:00", "25 02:00", "26 01:00"]);
    // Between the two passes nothing is repeated, whatever the last time was.
    assert_eq!(fires("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1), ["26 01:30"]);
}

#[test]
fn a_quarter_hourly_line_fires_at_each_real_quarter_hour() {
    let quarters = |zone: &str, from: &str| {
        let schedule = Schedule::parse("*/15 * * * *", parse_zone(zone).unwrap()).unwrap();
        let mut at = utc(from);
        for _ in 0..60 {
            let next = schedule.next_after(at).unwrap();
            assert_eq!(next - at, TimeDelta::minutes(15), "{zone} after {at}");
            assert_eq!(
                schedule.missed(at, next, CatchUp::Last, TimeDelta::zero()),
                Some(next),
                "{zone}: {next}"
            );
            at = next;
        }
    };
    for (zone, days) in [
        ("Europe/Berlin", ["2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z"]),
        ("America/New_York", ["2026-03-08T00:00:00Z", "2026-11-01T00:00:00Z"]),
        ("Australia/Lord_Howe", ["2026-04-04T09:00:00Z", "2026-10-03T09:00:00Z"]),
    ] {
        days.into_iter().for_each(|from| quarters(zone, from));
    }
}

#[test]
fn a_clock_that_moves_by_half_an_hour_skips_and_repeats_only_that() {
    let zone = "Australia/Lord_Howe";
    // On 4 October 02:00 becomes 02:30 at 15:30 UTC, on 5 April 02:00 becomes 01:30 at 15:00 UTC.
    assert_eq!(fires("15 2 * * *", zone, "2026-10-03T12:00:00Z", 2), ["03 15:30", "04 15:15"]);
    assert_eq!(fires("45 2 * * *", zone, "2026-10-03T12:00:00Z", 2), ["03 15:45", "04 15:45"]);
    assert_eq!(fires("45 1 * * *", zone, "2026-04-04T12:00:00Z", 2), ["04 14:45", "05 15:15"]);
    assert_eq!(fires("15 1 * * *", zone, "2026-04-04T12:00:00Z", 2), ["04 14:15", "05 14:45"]);
}

/// Numbers that look random and are the same in every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn field(&mut self, low: u64, high: u64) -> String {
        let one = |sequence: &mut Self| low + sequence.below(high - low + 1);
        match self.below(5) {
            0 => "*".to_owned(),
            1 => format!("*/{}", 1 + self.below(high - low)),
            2 => format!("{},{}", one(self), one(self)),
            3 => {
                let (a, b) = (one(self), one(self));
                format!("{}-{}", a.min(b), a.max(b))
            }
            _ => one(self).to_string(),
        }
    }
}

#[test]
fn the_next_time_is_later_and_the_last_time_before_it_is_the_one_before() {
    let zones = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Africa/Cairo",
        "America/St_Johns",
        "Africa/Casablanca",
        "Asia/Kathmandu",
        "Pacific/Apia",
        "Antarctica/Troll",
    ];
    let mut sequence = Sequence(7);
    let mut checked = 0;
    for _ in 0..400 {
        let (minute, hour) = (sequence.field(0, 59), sequence.field(0, 23));
        let (day, weekday) = (sequence.field(1, 28), sequence.field(0, 6));
        let line = match sequence.below(3) {
            0 => format!("{minute} {hour} {day} * *"),
            1 => format!("{minute} {hour} * * {weekday}"),
            _ => format!("{minute} {hour} * * *"),
        };
        let zone = zones[usize::try_from(sequence.below(zones.len() as u64)).unwrap()];
        let schedule = Schedule::parse(&line, parse_zone(zone).unwrap()).unwrap();
        // Some hours before a change of the clock, or at any time of the year.
        let changes = ["2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z", "2026-10-03T10:00:00Z"];
        let begin = match sequence.below(4) {
            at @ 0..3 => utc(changes[usize::try_from(at).unwrap()]),
            _ => utc("2026-01-01T00:00:00Z") + TimeDelta::seconds(sequence.below(31_536_000).cast_signed()),
        };
        let mut at = begin;
        for _ in 0..40 {
            let next = schedule.next_after(at).unwrap();
            assert!(next > at, "{line} in {zone}: {next} follows {at}");
            let asked = at + TimeDelta::milliseconds(sequence.below(1_000).cast_signed());
            assert!(schedule.next_after(asked).unwrap() >= next, "{line} in {zone}: goes back after {asked}");
            // Until just before the next time, the last one is this one.
            for now in
                [next - TimeDelta::seconds(1), at + (next - at) / 2].into_iter().filter(|now| *now > at)
            {
                let last = schedule.missed(begin, now, CatchUp::Last, TimeDelta::zero());
                let expected = (at > begin).then_some(at);
                assert_eq!(last, expected, "{line} in {zone} at {now}");
            }
            let last = schedule.missed(begin, next, CatchUp::Last, TimeDelta::zero());
            assert_eq!(last, Some(next), "{line} in {zone} at {next}");
            at = next;
            checked += 1;
        }
    }
    assert_eq!(checked, 16_000);
}

#[test]
fn after_an_outage_of_days_the_last_time_is_caught_up_or_none_is() {
    let schedule = Schedule::parse("30 2 * * *", parse_zone("Europe/Berlin").unwrap()).unwrap();
    let missed = |since: &str, now: &str, catch_up| {
        schedule.missed(utc(since), utc(now), catch_up, TimeDelta::minutes(5))
    };
    // From Thursday to Sunday noon, with the change of the clock between: 02:30 of Sunday was at 03:00.
    let (since, now) = ("2026-03-26T01:30:00Z", "2026-03-29T10:00:00Z");
    assert_eq!(missed(since, now, CatchUp::None), None);
    assert_eq!(missed(since, now, CatchUp::Last), Some(utc("2026-03-29T01:00:00Z")));
    // The time that was caught up is not caught up again.
    assert_eq!(missed("2026-03-29T01:00:00Z", now, CatchUp::Last), None);
    // In the repeated hour of 25 October, 02:30 has fired once and is not due again.
    assert_eq!(
        missed("2026-10-23T00:30:00Z", "2026-10-25T01:10:00Z", CatchUp::Last),
        Some(utc("2026-10-25T00:30:00Z"))
    );
    assert_eq!(missed("2026-10-25T00:30:00Z", "2026-10-25T01:35:00Z", CatchUp::Last), None);
}

#[test]
fn a_nickname_is_refused_with_what_to_write_instead() {
    for line in ["@reboot", "@daily", " @hourly "] {
        let error = Schedule::parse(line, Tz::UTC).unwrap_err().to_string();
        assert_eq!(error, format!("write five fields instead of {}, such as `0 7 * * *`", line.trim()));
    }
    let long = format!("{} * * * *", vec!["1"; 200].join(","));
    assert_eq!(
        Schedule::parse(&long, Tz::UTC).unwrap_err().to_string(),
        "a cron line has at most 200 characters"
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
        ", * * * *",
        "* 1,,2 * * *",
        "* * * * ,",
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
