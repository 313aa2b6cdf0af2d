//! An allowance is taken through everything Postgres may say, or not say.

use super::*;

const LIMIT: i64 = 5_000;

fn rules(block_size: i64) -> Quota {
    let retry_interval = Duration::from_secs(10);
    Quota {
        block_size,
        idle_timeout: Duration::from_secs(60),
        retry_interval,
        lease_timeout: Duration::from_secs(1),
    }
}

fn month(number: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, number, 1).unwrap()
}

fn fresh(now: Instant) -> Allowance {
    Allowance::new(month(11), LIMIT, &rules(100), now)
}

/// An allowance that was granted its first block of ten, none of it used.
fn granted_ten(now: Instant) -> Allowance {
    let mut allowance = fresh(now);
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Wait, true));
    let request = allowance.next_request();
    assert_eq!(request, LeaseRequest { month: month(11), want: 10, limit: LIMIT });
    allowance.granted(request, 10, now);
    allowance
}

/// How many are counted, one after the other, before it has to wait or refuse.
fn taken(allowance: &mut Allowance, now: Instant) -> usize {
    std::iter::repeat_with(|| allowance.take(month(11), LIMIT, now).0)
        .take_while(|verdict| *verdict == Verdict::Taken)
        .count()
}

#[test]
fn the_first_event_waits_for_a_block_and_only_it_asks() {
    let now = Instant::now();
    let mut allowance = fresh(now);
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Wait, true));
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Wait, false));
    let request = allowance.next_request();
    allowance.granted(request, request.want, now);
    assert_eq!(taken(&mut allowance, now), 10);
}

#[test]
fn the_next_block_is_asked_for_before_the_last_is_used_and_grows_to_a_whole_one() {
    let now = Instant::now();
    let mut allowance = granted_ten(now);
    let mut wanted = Vec::new();
    for _ in 0..6 {
        let asked_after = (1..).find(|_| allowance.take(month(11), LIMIT, now).1).unwrap();
        let request = allowance.next_request();
        wanted.push((asked_after, request.want));
        assert!(allowance.left > 0, "an event would have waited");
        assert!(allowance.left + request.want <= 100, "more than a block is leased");
        allowance.granted(request, request.want, now);
    }
    assert_eq!(wanted, [(8, 18), (16, 36), (31, 71), (63, 83), (80, 80), (80, 80)]);
}

#[test]
fn a_month_that_is_used_up_is_not_asked_about_with_every_event() {
    let now = Instant::now();
    let mut allowance = granted_ten(now);
    while !allowance.take(month(11), LIMIT, now).1 {}
    allowance.granted(allowance.next_request(), 0, now);
    assert_eq!(taken(&mut allowance, now), 2, "what was leased is used");
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::UsedUp, false));
    let later = now + Duration::from_secs(10);
    assert_eq!(allowance.take(month(11), LIMIT, later), (Verdict::UsedUp, true));
    allowance.granted(allowance.next_request(), 1, later);
    assert_eq!(taken(&mut allowance, later), 1, "somebody gave one back");
}

#[test]
fn another_plan_or_another_month_is_asked_about_at_once() {
    let now = Instant::now();
    let used_up = || {
        let mut allowance = fresh(now);
        allowance.take(month(11), LIMIT, now);
        allowance.granted(allowance.next_request(), 0, now);
        assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::UsedUp, false));
        allowance
    };
    let mut upgraded = used_up();
    assert_eq!(upgraded.take(month(11), 500_000, now), (Verdict::Wait, true));
    assert_eq!(upgraded.next_request().limit, 500_000);
    let mut next_month = used_up();
    assert_eq!(next_month.take(month(12), LIMIT, now), (Verdict::Wait, true));
    assert_eq!(next_month.next_request().month, month(12));
}

#[test]
fn while_postgres_is_away_events_are_taken_and_paid_for_afterwards() {
    let now = Instant::now();
    let mut allowance = fresh(now);
    allowance.take(month(11), LIMIT, now);
    allowance.unanswered(now);
    for _ in 0..30 {
        assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Taken, false));
    }
    let later = now + TRY_AGAIN_AFTER;
    assert!(!allowance.close_if_idle(month(11), now + Duration::from_secs(600), Duration::ZERO));
    assert_eq!(allowance.take(month(11), LIMIT, later), (Verdict::Taken, true));
    let request = allowance.next_request();
    assert_eq!(request.want, 31 + 10);
    allowance.granted(request, request.want, later);
    assert_eq!(taken(&mut allowance, later), 10);
}

#[test]
fn what_can_not_be_paid_from_a_lease_is_charged() {
    let now = Instant::now();
    let mut allowance = fresh(now);
    allowance.take(month(11), LIMIT, now);
    allowance.take_on_credit();
    allowance.take_on_credit();
    allowance.granted(allowance.next_request(), 0, now);
    assert_eq!(allowance.take_rests(), [(month(11), -2)]);
    assert_eq!(allowance.take(month(11), LIMIT, now).0, Verdict::UsedUp);
}

#[test]
fn what_was_used_up_before_postgres_went_away_stays_so() {
    let now = Instant::now();
    let mut allowance = fresh(now);
    allowance.take(month(11), LIMIT, now);
    allowance.granted(allowance.next_request(), 0, now);
    let later = now + Duration::from_secs(10);
    assert_eq!(allowance.take(month(11), LIMIT, later), (Verdict::UsedUp, true));
    allowance.unanswered(later);
    assert_eq!(allowance.take(month(11), LIMIT, later), (Verdict::UsedUp, false));
}

#[test]
fn an_account_that_falls_silent_gives_back_what_is_left() {
    let (now, idle) = (Instant::now(), Duration::from_secs(60));
    let mut allowance = granted_ten(now);
    allowance.take(month(11), LIMIT, now);
    assert!(!allowance.close_if_idle(month(11), now + Duration::from_secs(59), idle));
    assert!(allowance.close_if_idle(month(11), now + idle, idle));
    assert_eq!(allowance.take_rests(), [(month(11), 9)]);
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Closed, false));
}

#[test]
fn a_month_that_ends_gives_back_its_own_and_so_does_a_lease_that_comes_late() {
    let now = Instant::now();
    let mut allowance = granted_ten(now);
    while !allowance.take(month(11), LIMIT, now).1 {}
    let asked_in_november = allowance.next_request();
    assert!(!allowance.close_if_idle(month(12), now, Duration::from_secs(60)));
    allowance.granted(asked_in_november, 18, now);
    assert_eq!(allowance.take_rests(), [(month(11), 2), (month(11), 18)]);
    assert_eq!(allowance.take(month(12), LIMIT, now), (Verdict::Wait, true));
    // A request that began before midnight counts in the month it is finished in.
    assert_eq!(allowance.take(month(11), LIMIT, now), (Verdict::Wait, false));
}

#[test]
fn an_event_that_came_to_nothing_can_be_taken_again() {
    let now = Instant::now();
    let mut allowance = granted_ten(now);
    assert_eq!(taken(&mut allowance, now), 10);
    allowance.undo();
    assert_eq!(taken(&mut allowance, now), 1);
}
