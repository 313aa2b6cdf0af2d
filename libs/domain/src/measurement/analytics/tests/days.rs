//! Tests of days, weeks and hours in time zones with days of other than 24 hours.

use super::*;
use crate::analytics::{Bucket, Days, Grouping, MetricQuery, RawMetricQuery, parse_metric_query};

fn days(first: &str, last: &str) -> Days {
    Days { first: day(first), last: day(last) }
}

fn question(query: RawMetricQuery<'_>, now: &str, name: &str) -> MetricQuery {
    parse_metric_query(&query, at(now), zone(name)).unwrap()
}

fn lengths(buckets: &[Bucket]) -> Vec<i64> {
    buckets.iter().map(|bucket| (bucket.range.end - bucket.range.start).num_minutes()).collect()
}

fn dates(buckets: &[Bucket]) -> Vec<&str> {
    buckets.iter().map(|bucket| bucket.date.as_str()).collect()
}

#[test]
fn a_period_of_n_days_is_today_and_the_days_before() {
    for (period, first) in
        [("today", "2026-11-21"), ("7d", "2026-11-15"), ("30d", "2026-10-23"), ("90d", "2026-08-24")]
    {
        let range = question(
            RawMetricQuery { days: recent_days(period), ..RawMetricQuery::default() },
            "2026-11-21T10:00:00Z",
            "UTC",
        )
        .range;
        assert_eq!(range, days(first, "2026-11-21").range(Zone::UTC), "{period}");
    }
}

#[test]
fn today_is_in_the_sites_time_zone() {
    let query = RawMetricQuery { days: recent_days("today"), ..RawMetricQuery::default() };
    let range = question(query, "2026-11-21T18:30:00Z", "Asia/Kathmandu").range;
    assert_eq!((range.start, range.end), (at("2026-11-21T18:15:00Z"), at("2026-11-22T18:15:00Z")));
}

#[test]
fn a_day_is_as_long_as_its_clock_says() {
    let minutes = |name: &str, date: &str| {
        let range = days(date, date).range(zone(name));
        (range.end - range.start).num_minutes()
    };
    assert_eq!(minutes("Europe/Berlin", "2026-03-29"), 23 * 60);
    assert_eq!(minutes("Europe/Berlin", "2026-10-25"), 25 * 60);
    assert_eq!(minutes("Australia/Lord_Howe", "2026-04-05"), 24 * 60 + 30);
    // This day had no midnight …
    assert_eq!(minutes("America/Sao_Paulo", "2018-11-04"), 23 * 60);
    // … this one had two …
    assert_eq!(minutes("America/Havana", "2026-11-01"), 25 * 60);
    // … and this one did not exist.
    assert_eq!(minutes("Pacific/Apia", "2011-12-30"), 0);
    assert_eq!(Grouping::Day.buckets(days("2011-12-29", "2011-12-31"), zone("Pacific/Apia")).len(), 2);
}

#[test]
fn buckets_follow_one_another_without_gaps() {
    let zones =
        ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Apia"];
    for name in zones {
        for grouping in Grouping::ALL {
            for some in [days("2018-10-20", "2019-03-03"), days("2011-12-20", "2012-01-10")] {
                let buckets = grouping.buckets(some, zone(name));
                let whole = some.range(zone(name));
                assert_eq!(buckets[0].range.start, whole.start);
                assert_eq!(buckets.last().unwrap().range.end, whole.end);
                assert!(buckets.iter().all(|bucket| bucket.range.start < bucket.range.end));
                assert!(buckets.windows(2).all(|pair| pair[0].range.end == pair[1].range.start), "{name}");
                assert!(buckets.windows(2).all(|pair| pair[0].date != pair[1].date), "{name}");
            }
        }
    }
}

#[test]
fn hours_are_those_of_the_clock() {
    let of = |name: &str, date: &str| Grouping::Hour.buckets(days(date, date), zone(name));
    assert_eq!(lengths(&of("Europe/Berlin", "2026-03-29")), [60; 23]);
    let autumn = of("Europe/Berlin", "2026-10-25");
    assert_eq!(dates(&autumn)[2..4], ["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"]);
    // Half an hour is repeated here.
    let half = of("Australia/Lord_Howe", "2026-04-05");
    assert_eq!(lengths(&half)[1..4], [60, 30, 60]);
    assert_eq!(
        dates(&half)[1..4],
        ["2026-04-05T01:00:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T02:00:00+10:30"]
    );
    assert_eq!(of("Asia/Kathmandu", "2026-01-01")[0].range.start, at("2025-12-31T18:15:00Z"));
    assert_eq!(of("America/Sao_Paulo", "2018-11-04")[0].date, "2018-11-04T01:00:00-02:00");
}

#[test]
fn weeks_begin_on_monday_and_are_clipped_to_the_period() {
    // 2026-11-21 is a Saturday.
    let weeks = Grouping::Week.buckets(days("2026-11-12", "2026-11-24"), Zone::UTC);
    assert_eq!(dates(&weeks), ["2026-11-12", "2026-11-16", "2026-11-23"]);
    assert_eq!(lengths(&weeks), [4 * 1440, 7 * 1440, 2 * 1440]);
    let months = Grouping::Month.buckets(days("2026-01-31", "2026-03-01"), Zone::UTC);
    assert_eq!(dates(&months), ["2026-01-31", "2026-02-01", "2026-03-01"]);
}

#[test]
fn a_period_is_compared_with_as_many_days_before_without_future_days() {
    let before = |from, to, today| {
        let days = days(from, to).before(day(today));
        (days.first.to_string(), days.last.to_string())
    };
    let pair = |first: &str, last: &str| (first.to_owned(), last.to_owned());
    assert_eq!(before("2026-11-15", "2026-11-21", "2026-11-21"), pair("2026-11-08", "2026-11-14"));
    assert_eq!(before("2026-11-01", "2026-11-30", "2026-11-12"), pair("2026-10-20", "2026-10-31"));
    assert_eq!(before("2026-12-01", "2026-12-02", "2026-11-12"), pair("2026-11-29", "2026-11-30"));
}
