//! Tests of the rules for certificates.

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

const LIMITS: OrderLimits =
    OrderLimits { orders_per_3h: 300, certificates_per_domain_per_week: 50, failures_per_hour: 5 };

#[test]
fn an_order_waits_for_the_longest_exhausted_limit_and_says_which() {
    assert_eq!(LIMITS.delay(&ExhaustedLimits::default(), at(0)), None);
    let order = ExhaustedLimits { order: Some(at(0)), ..ExhaustedLimits::default() };
    let delay = LIMITS.delay(&order, at(60)).unwrap();
    assert_eq!(delay.until, at(3 * 3600));
    assert!(delay.reason.contains("300 orders in 3 hours"), "{}", delay.reason);
    assert_eq!(LIMITS.delay(&order, at(3 * 3600)), None, "the period is over");
    let all = ExhaustedLimits {
        certificate: Some(at(-3600)),
        failure: Some(at(50)),
        account_order: Some(at(0)),
        ..order
    };
    let delay = LIMITS.delay(&all, at(60)).unwrap();
    assert_eq!(delay.until, at(7 * 86_400 - 3600));
    assert!(delay.reason.contains("50 certificates"), "{}", delay.reason);
    let failure = ExhaustedLimits { failure: Some(at(50)), ..ExhaustedLimits::default() };
    assert_eq!(LIMITS.delay(&failure, at(60)).unwrap().until, at(3650));
}

#[test]
fn one_account_gets_half_of_the_first_orders_and_a_tenth_is_kept_for_renewals() {
    let shares = |orders_per_3h| {
        let limits = OrderLimits { orders_per_3h, ..LIMITS };
        (limits.first_orders_per_3h(), limits.account_orders_per_3h())
    };
    assert_eq!((shares(300), shares(6), shares(1)), ((270, 135), (6, 3), (1, 1)));
    assert_eq!(shares(u32::MAX).0, u32::MAX - u32::MAX / 10);
    let exhausted = ExhaustedLimits { account_order: Some(at(0)), ..ExhaustedLimits::default() };
    let delay = LIMITS.delay(&exhausted, at(60)).unwrap();
    assert_eq!(delay.until, at(3 * 3600));
    assert!(delay.reason.contains("One account may order 135 certificates in 3 hours"), "{}", delay.reason);
}

#[test]
fn certificates_are_counted_by_registered_domain() {
    for (host, domain) in [
        ("www.example.com", "example.com"),
        ("example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("blog.someone.github.io", "someone.github.io"),
        ("*.sites.example.net", "example.net"),
        ("co.uk", "co.uk"),
        ("shop.example.unknown-suffix", "example.unknown-suffix"),
    ] {
        assert_eq!(registered_domain(host), domain);
    }
}

#[test]
fn retries_follow_the_schedule_whose_last_delay_repeats() {
    let schedule = [60, 3600].map(Duration::from_secs);
    let after = |failures, fraction| (retry_at(&schedule, failures, fraction, at(0)) - at(0)).num_seconds();
    assert_eq!((after(1, 0.5), after(2, 0.5), after(3, 0.5)), (60, 3600, 3600));
    assert_eq!((after(1, 0.0), after(1, 1.0)), (48, 72));
    assert_eq!(after(u32::MAX, 0.5), 3600);
    assert_eq!((retry_at(&[], 1, 0.5, at(0)) - at(0)).num_seconds(), 3600, "never at once");
}

#[test]
fn a_certificate_is_renewed_with_a_third_of_its_life_left_or_when_the_authority_says() {
    let (start, end) = (at(0), at(90 * 86_400));
    assert_eq!(renew_at(start, end, None, 0.7), at(60 * 86_400));
    let window = |from, to| Some((at(from), at(to)));
    assert_eq!(renew_at(start, end, window(1_000, 2_000), 0.0), at(1_000));
    assert_eq!(renew_at(start, end, window(1_000, 2_000), 0.5), at(1_500));
    // A window after the end or with its ends swapped is no window.
    assert_eq!(renew_at(start, end, window(91 * 86_400, 92 * 86_400), 0.5), at(60 * 86_400));
    assert_eq!(renew_at(start, end, window(2_000, 1_000), 0.5), at(60 * 86_400));
}

#[test]
fn a_window_that_ends_with_the_certificate_leaves_time_for_further_attempts() {
    let renewed = |days: i64, from: i64, to: i64, fraction| {
        let window = (at(from * 86_400), at(to * 86_400));
        (renew_at(at(0), at(days * 86_400), Some(window), fraction) - at(0)).num_hours()
    };
    assert_eq!(renewed(90, 89, 99, 1.0), 81 * 24, "a tenth of its life is left");
    assert_eq!(renewed(90, 89, 99, 0.0), 81 * 24);
    assert_eq!(renewed(90, 80, 82, 0.5), 81 * 24, "a window before that is followed");
    assert_eq!(renewed(6, 5, 7, 1.0), 5 * 24, "a day is left of a short life");
    assert_eq!(renewed(2, 1, 3, 1.0), 32, "a third of two days");
}

#[test]
fn limits_that_stand_lead_to_the_second_authority_a_day_after_the_first_delay() {
    let day = TimeDelta::days(1);
    assert_eq!(fallback_at(None, day, at(0)), at(86_400));
    assert_eq!(fallback_at(Some(at(-86_400)), day, at(0)), at(0));
}

#[test]
fn the_second_authority_is_tried_after_a_day_of_failures_and_the_first_in_turn() {
    let chosen =
        |failing_for: i64, failures| authority(Some(at(-failing_for)), failures, TimeDelta::days(1), at(0));
    assert_eq!(authority(None, 0, TimeDelta::days(1), at(0)), Authority::First);
    assert_eq!(chosen(86_399, 7), Authority::First);
    assert_eq!(chosen(86_400, 7), Authority::Fallback);
    let next: Vec<Authority> = (8..12).map(|failures| chosen(90_000, failures)).collect();
    assert_eq!(next, [Authority::First, Authority::First, Authority::Fallback, Authority::Fallback]);
}

#[test]
fn each_failure_moves_on_to_the_next_kind_of_challenge() {
    let both = [ChallengeKind::Http01, ChallengeKind::TlsAlpn01];
    let kind = |failures| ChallengeKind::of_attempt(&both, failures);
    assert_eq!((kind(0), kind(1), kind(2)), (Some(both[0]), Some(both[1]), Some(both[0])));
    assert_eq!(ChallengeKind::of_attempt(&both[..1], 3), Some(both[0]));
    assert_eq!(ChallengeKind::of_attempt(&[], 0), None);
}

#[test]
fn the_moment_in_a_window_is_stable_for_one_certificate_and_spread_over_all() {
    assert!((fraction_of("a.b") - fraction_of("a.b")).abs() < f64::EPSILON);
    let fractions: Vec<f64> = (0..1_000).map(|serial| fraction_of(&format!("key.{serial}"))).collect();
    assert!(fractions.iter().all(|fraction| (0.0..1.0).contains(fraction)));
    let early = fractions.iter().filter(|fraction| **fraction < 0.5).count();
    assert!((400..600).contains(&early), "{early} of 1,000 in the first half");
}
