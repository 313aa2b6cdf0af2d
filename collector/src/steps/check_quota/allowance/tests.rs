//! Drives an allowance through every result of a lease request.

use super::*;

const LIMIT: i64 = 5_000;

fn config(block_size: i64) -> Quota {
    let retry_interval = Duration::from_secs(10);
    let lease_timeout = Duration::from_secs(1);
    Quota { block_size, idle_timeout: Duration::from_secs(60), retry_interval, lease_timeout }
}

fn month(number: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, number, 1).unwrap()
}

fn new_allowance(now: Instant) -> Allowance {
    Allowance::new(month(11), LIMIT, &config(100), now)
}

/// An allowance with its first block of ten, unused.
fn granted_ten(now: Instant) -> Allowance {
    let mut allowance = new_allowance(now);
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Pending, true));
    let request = allowance.next_request();
    assert_eq!(request, LeaseRequest { month: month(11), count: 10, limit: LIMIT });
    allowance.on_granted(request, 10, now);
    allowance
}

/// Takes events until one is not counted. Returns how many were.
fn taken(allowance: &mut Allowance, now: Instant) -> usize {
    std::iter::repeat_with(|| allowance.take(month(11), LIMIT, now).0)
        .take_while(|verdict| *verdict == Verdict::Taken)
        .count()
}

#[test]
fn the_first_event_requests_a_block_and_the_next_only_waits() {
    let now = Instant::now();
    let mut allowance = new_allowance(now);
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Pending, true));
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Pending, false));
    let request = allowance.next_request();
    allowance.on_granted(request, request.count, now);
    assert_eq!(taken(&mut allowance, now), 10);
}

#[test]
fn the_next_block_is_requested_early_and_grows_to_the_full_size() {
    let now = Instant::now();
    let mut allowance = granted_ten(now);
    let mut requested = Vec::new();
    for _ in 0..6 {
        let events_before = (1..).find(|_| allowance.take(month(11), LIMIT, now).1).unwrap();
        let request = allowance.next_request();
        requested.push((events_before, request.count));
        assert!(allowance.left > 0, "an event would have waited");
        assert!(allowance.left + request.count <= 100, "more than a block is leased");
        allowance.on_granted(request, request.count, now);
    }
    assert_eq!(requested, [(8, 18), (16, 36), (31, 71), (63, 83), (80, 80), (80, 80)]);
}

#[test]
fn an_exhausted_month_is_requested_again_only_after_the_retry_interval() {
    let now = Instant::now();
    let mut allowance = granted_ten(now);
    while !allowance.take(month(11), LIMIT, now).1 {}
    allowance.on_granted(allowance.next_request(), 0, now);
    assert_eq!(taken(&mut allowance, now), 2, "the rest of the block is used");
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Exhausted, false));
    let later = now + Duration::from_secs(10);
    assert_eq!(allowance.take(month(11), LIMIT, later), (Verdict::Exhausted, true));
    allowance.on_granted(allowance.next_request(), 1, later);
    assert_eq!(taken(&mut allowance, later), 1, "another collector returned one");
}

#[test]
fn another_plan_or_another_month_is_requested_at_once() {
    let now = Instant::now();
    let exhausted = || {
        let mut allowance = new_allowance(now);
        allowance.take(month(11), LIMIT, now);
        allowance.on_granted(allowance.next_request(), 0, now);
        assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Exhausted, false));
        allowance
    };
    let mut upgraded = exhausted();
    assert_eq!(upgraded.take(month(11), 500_000, now), (Verdict::Pending, true));
    assert_eq!(upgraded.next_request().limit, 500_000);
    let mut next_month = exhausted();
    assert_eq!(next_month.take(month(12), LIMIT, now), (Verdict::Pending, true));
    assert_eq!(next_month.next_request().month, month(12));
}

#[test]
fn while_postgres_is_unavailable_events_are_taken_on_credit() {
    let now = Instant::now();
    let mut allowance = new_allowance(now);
    allowance.take(month(11), LIMIT, now);
    allowance.on_unavailable(now);
    for _ in 0..30 {
        assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Taken, false));
    }
    let later = now + RETRY_AFTER;
    assert!(!allowance.close_if_idle(month(11), now + Duration::from_secs(600), Duration::ZERO));
    assert_eq!(allowance.take(month(11), LIMIT, later), (Verdict::Taken, true));
    let request = allowance.next_request();
    assert_eq!(request.count, 31 + 10);
    allowance.on_granted(request, request.count, later);
    assert_eq!(taken(&mut allowance, later), 10);
}

#[test]
fn events_on_credit_are_charged_if_no_lease_covers_them() {
    let now = Instant::now();
    let mut allowance = new_allowance(now);
    allowance.take(month(11), LIMIT, now);
    allowance.take_on_credit();
    allowance.take_on_credit();
    allowance.on_granted(allowance.next_request(), 0, now);
    assert_eq!(allowance.take_settlements(), [(month(11), -2)]);
    assert_eq!(allowance.take(month(11), LIMIT, now).0, Verdict::Exhausted);
}

#[test]
fn an_exhausted_month_stays_so_while_postgres_is_unavailable() {
    let now = Instant::now();
    let mut allowance = new_allowance(now);
    allowance.take(month(11), LIMIT, now);
    allowance.on_granted(allowance.next_request(), 0, now);
    let later = now + Duration::from_secs(10);
    assert_eq!(allowance.take(month(11), LIMIT, later), (Verdict::Exhausted, true));
    allowance.on_unavailable(later);
    assert_eq!(allowance.take(month(11), LIMIT, later), (Verdict::Exhausted, false));
}

#[test]
fn an_idle_account_returns_its_unused_events() {
    let (now, idle_timeout) = (Instant::now(), Duration::from_secs(60));
    let mut allowance = granted_ten(now);
    allowance.take(month(11), LIMIT, now);
    assert!(!allowance.close_if_idle(month(11), now + Duration::from_secs(59), idle_timeout));
    assert!(allowance.close_if_idle(month(11), now + idle_timeout, idle_timeout));
    assert_eq!(allowance.take_settlements(), [(month(11), 9)]);
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Closed, false));
}

#[test]
fn an_ended_month_returns_its_rest_and_a_lease_that_arrives_late() {
    let now = Instant::now();
    let mut allowance = granted_ten(now);
    while !allowance.take(month(11), LIMIT, now).1 {}
    let november_request = allowance.next_request();
    assert!(!allowance.close_if_idle(month(12), now, Duration::from_secs(60)));
    allowance.on_granted(november_request, 18, now);
    assert_eq!(allowance.take_settlements(), [(month(11), 2), (month(11), 18)]);
    assert_eq!(allowance.take(month(12), LIMIT, now), (Verdict::Pending, true));
    // A request that began before midnight counts in the month it finishes in.
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Pending, false));
}

#[test]
fn an_undone_event_can_be_taken_again() {
    let now = Instant::now();
    let mut allowance = granted_ten(now);
    assert_eq!(taken(&mut allowance, now), 10);
    allowance.undo();
    assert_eq!(taken(&mut allowance, now), 1);
}
