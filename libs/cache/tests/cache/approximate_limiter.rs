//! Several processes enforce one limit without an exchange per hit.

use std::time::Duration;

use cache::{ApproximateLimiter, Rule};
use chrono::{DateTime, TimeDelta, Utc};

const RULE: Rule = Rule { limit: 30, window: Duration::from_mins(1) };

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_003_200, 0).unwrap()
}

fn connect(redis: &sandbox::test::TestRedis) -> ApproximateLimiter {
    ApproximateLimiter::connect(&redis.url, &redis.prefix, b"pepper", RULE).unwrap()
}

fn allowed(limiter: &ApproximateLimiter, hits: u32, now: DateTime<Utc>) -> u32 {
    (0..hits).map(|_| u32::from(limiter.hit(7, now))).sum()
}

#[tokio::test]
async fn one_process_allows_exactly_the_limit_of_each_window() {
    let redis = sandbox::test::redis().await;
    let limiter = connect(&redis);
    assert_eq!(allowed(&limiter, 100, noon()), 30);
    limiter.share_counts(noon()).await;
    assert_eq!(allowed(&limiter, 100, noon()), 0);
    assert!(limiter.hit(8, noon()), "another key");
    assert_eq!(allowed(&limiter, 100, noon() + TimeDelta::minutes(1)), 30);
}

#[tokio::test]
async fn processes_share_the_limit() {
    let redis = sandbox::test::redis().await;
    let limiters = [connect(&redis), connect(&redis), connect(&redis)];
    let mut allowed_hits = 0;
    for _ in 0..50 {
        for limiter in &limiters {
            allowed_hits += allowed(limiter, 1, noon());
            limiter.share_counts(noon()).await;
        }
    }
    // The others learn of a key's hits from the sixth on.
    assert!((30..=30 + 2 * 5).contains(&allowed_hits), "{allowed_hits}");
}

#[tokio::test]
async fn a_client_that_switches_processes_finds_the_limit_used_up() {
    let redis = sandbox::test::redis().await;
    let (first, second) = (connect(&redis), connect(&redis));
    assert_eq!(allowed(&first, 100, noon()), 30);
    first.share_counts(noon()).await;
    let before_the_exchange = allowed(&second, 6, noon());
    second.share_counts(noon()).await;
    assert_eq!((before_the_exchange, allowed(&second, 100, noon())), (6, 0));
}

#[tokio::test]
async fn without_redis_a_process_counts_alone_and_shares_later() {
    let redis = sandbox::test::redis().await;
    let isolated = ApproximateLimiter::connect("redis://127.0.0.1:1", "x", b"pepper", RULE).unwrap();
    assert_eq!(allowed(&isolated, 20, noon()), 20);
    isolated.share_counts(noon()).await;
    assert_eq!(allowed(&isolated, 20, noon()), 10);
    drop(redis);
}

#[tokio::test]
async fn a_flood_of_addresses_neither_lifts_the_limit_of_its_sender_nor_limits_others() {
    const LIMIT: Rule = Rule { limit: 1_000, window: Duration::from_hours(24) };
    /// More than the limiter counts at a time.
    const FLOOD: u128 = 1 << 21;
    let limiter = ApproximateLimiter::connect("redis://127.0.0.1:1", "x", b"pepper", LIMIT).unwrap();
    let allowed = |key, hits: u32| (0..hits).map(|_| u32::from(limiter.hit(key, noon()))).sum::<u32>();
    assert_eq!((allowed(1, 1_200), allowed(2, 400)), (1_000, 400));
    for address in 0..FLOOD {
        assert!(limiter.hit(1_000 + address, noon()), "an address within its limit");
    }
    assert_eq!(allowed(1, 100), 0, "the limit that was reached before still applies");
    assert_eq!(allowed(2, 1_200), 600, "and hits from before still count");
    assert_eq!(allowed(3, 1_200), 1_000, "an address that is new now has the same limit");
}
