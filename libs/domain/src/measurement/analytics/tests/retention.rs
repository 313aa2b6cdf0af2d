//! Tests of cohorts and id lifetimes.

use super::*;
use crate::analytics::{
    Granularity, Lifetime, RawRetentionQuery, RetentionQuery, ReturnCount, fill_cohorts, mean_retention,
    parse_retention_query, retention_hint,
};

fn query(from: &str, to: &str, granularity: &str) -> RetentionQuery {
    let query = RawRetentionQuery {
        days: custom_days(from, to),
        granularity: Some(granularity),
        ..RawRetentionQuery::default()
    };
    parse_retention_query(&query, now(), Zone::UTC).unwrap()
}

fn returns(joined: &str, active: &str, count: u64) -> ReturnCount {
    ReturnCount { joined: day(joined), active: day(active), count }
}

#[test]
fn a_cohort_is_complete_at_first_and_unknown_in_the_future() {
    let query = query("2026-11-19", "2026-11-22", "day");
    let counts = [
        returns("2026-11-19", "2026-11-19", 10),
        returns("2026-11-19", "2026-11-21", 4),
        returns("2026-11-20", "2026-11-20", 30),
        returns("2026-11-20", "2026-11-21", 6),
    ];
    let cohorts = fill_cohorts(&query, &counts, &[day("2026-11-01")], Lifetime::Month);
    let retention: Vec<_> = cohorts.iter().map(|cohort| (cohort.total, cohort.retention())).collect();
    assert_eq!(
        retention,
        [
            (10, vec![Some(100.0), Some(0.0), Some(40.0), None]),
            (30, vec![Some(100.0), Some(20.0), None, None]),
            (0, vec![Some(0.0), None, None, None]),
            (0, vec![None, None, None, None]),
        ]
    );
    assert_eq!(mean_retention(&cohorts), [Some(100.0), Some(15.0), Some(40.0), None]);
    assert_eq!(mean_retention(&cohorts[2..]), [None; 4], "a mean of nothing");
    assert_eq!(query.last_day(), day("2026-11-21"));
}

#[test]
fn a_return_after_an_id_rotation_is_unknown() {
    let query = query("2026-10-30", "2026-11-02", "day");
    let counts = [returns("2026-10-30", "2026-10-30", 5), returns("2026-10-30", "2026-10-31", 5)];
    let cells = |epochs: &[NaiveDate], lifetime| -> Vec<Vec<bool>> {
        let cohorts = fill_cohorts(&query, &counts, epochs, lifetime);
        cohorts.iter().map(|cohort| cohort.active.iter().map(Option::is_some).collect()).collect()
    };
    let monthly = [
        vec![true, true, false, false],
        vec![true, false, false, false],
        vec![true, true, true, true],
        vec![true, true, true, true],
    ];
    assert_eq!(cells(&[day("2026-10-01"), day("2026-11-01")], Lifetime::Month), monthly);
    // No visitor joined since, but ids rotated all the same.
    assert_eq!(cells(&[day("2026-10-01")], Lifetime::Month), monthly);
    let daily = cells(&[day("2026-10-30")], Lifetime::Day);
    assert!(daily.iter().all(|row| row == &[true, false, false, false]), "{daily:?}");
    let quarterly = cells(&[day("2026-10-01")], Lifetime::Quarter);
    assert!(quarterly.iter().flatten().all(|known| *known));
}

#[test]
fn weeks_of_a_cohort_are_calendar_weeks_even_if_the_first_is_clipped() {
    // 2026-11-04 is a Wednesday.
    let query = query("2026-11-04", "2026-11-18", "week");
    let firsts: Vec<_> = query.periods.iter().map(|days| days.first).collect();
    assert_eq!(firsts, ["2026-11-04", "2026-11-09", "2026-11-16"].map(day));
    let counts = [returns("2026-11-02", "2026-11-02", 2), returns("2026-11-02", "2026-11-16", 1)];
    let cohorts = fill_cohorts(&query, &counts, &[], Lifetime::Month);
    assert_eq!(cohorts[0].retention(), [Some(100.0), Some(0.0), Some(50.0)]);
    assert_eq!(cohorts[1].retention(), [Some(0.0), Some(0.0), None]);
}

#[test]
fn periods_as_long_as_an_id_lifetime_come_with_a_hint() {
    assert!(retention_hint(Granularity::Week, Lifetime::Month).is_none());
    assert!(retention_hint(Granularity::Day, Lifetime::Week).is_none());
    for (granularity, lifetime) in [
        (Granularity::Day, Lifetime::Day),
        (Granularity::Week, Lifetime::Day),
        (Granularity::Month, Lifetime::Month),
    ] {
        let hint = retention_hint(granularity, lifetime).unwrap();
        assert!(hint.contains(granularity.as_str()) && hint.contains("visitorIdLifetime"), "{hint}");
    }
}
