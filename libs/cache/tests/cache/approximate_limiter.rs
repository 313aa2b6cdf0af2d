//! A limit that several processes keep without asking each other every time.

use std::time::Duration;

use cache::{ApproximateLimiter, Rule};
use chrono::{DateTime, TimeDelta, Utc};

const RULE: Rule = Rule { limit: 30, window: Duration::from_mins(1) };

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_003_200, 0).unwrap()
}

fn meter(redis: &sandbox::test::TestRedis) -> ApproximateLimiter {
    ApproximateLimiter::connect(&redis.url, &redis.prefix, b"pepper", RULE).unwrap()
}

fn allowed(meter: &ApproximateLimiter, hits: u32, now: DateTime<Utc>) -> u32 {
    (0..hits).map(|_| u32::from(meter.hit(7, now))).sum()
}

#[tokio::test]
async fn one_process_lets_through_exactly_the_limit_of_each_window() {
    let redis = sandbox::test::redis().await;
    let meter = meter(&redis);
    assert_eq!(allowed(&meter, 100, noon()), 30);
    meter.share_counts(noon()).await;
    assert_eq!(allowed(&meter, 100, noon()), 0);
    assert!(meter.hit(8, noon()), "another key");
    assert_eq!(allowed(&meter, 100, noon() + TimeDelta::minutes(1)), 30);
}

#[tokio::test]
async fn processes_that_share_the_hits_share_the_limit() {
    let redis = sandbox::test::redis().await;
    let meters = [meter(&redis), meter(&redis), meter(&redis)];
    let mut through = 0;
    for _ in 0..50 {
        for meter in &meters {
            through += allowed(meter, 1, noon());
            meter.share_counts(noon()).await;
        }
    }
    // The others hear of a key's hits from the sixth on.
    assert!((30..=30 + 2 * 5).contains(&through), "{through}");
}

#[tokio::test]
async fn who_turns_to_another_process_finds_the_limit_there_before_it() {
    let redis = sandbox::test::redis().await;
    let (first, second) = (meter(&redis), meter(&redis));
    assert_eq!(allowed(&first, 100, noon()), 30);
    first.share_counts(noon()).await;
    let before_it_asked = allowed(&second, 6, noon());
    second.share_counts(noon()).await;
    assert_eq!((before_it_asked, allowed(&second, 100, noon())), (6, 0));
}

#[tokio::test]
async fn without_redis_each_process_counts_for_itself_and_tells_later() {
    let redis = sandbox::test::redis().await;
    let away = ApproximateLimiter::connect("redis://127.0.0.1:1", "x", b"pepper", RULE).unwrap();
    assert_eq!(allowed(&away, 20, noon()), 20);
    away.share_counts(noon()).await;
    assert_eq!(allowed(&away, 20, noon()), 10);
    drop(redis);
}
