//! Limits are shared by all processes and still enforced while Redis is unavailable.

use std::time::{Duration, Instant};

use cache::{Limiter, Rule};
use chrono::{DateTime, TimeDelta, Utc};

use sandbox::test::KillableRedis;

use crate::support::{command, redis};

const HOUR: Duration = Duration::from_hours(1);
const RULES: [Rule; 2] =
    [Rule { limit: 5, window: HOUR }, Rule { limit: 7, window: Duration::from_hours(24) }];
const ADDRESS: &str = "203.0.113.77";

/// A limiter that waits for Redis even on a busy machine.
fn connect(url: &str, prefix: &str, pepper: &[u8]) -> Limiter {
    Limiter::connect_with_timeout(url, prefix, pepper, Duration::from_secs(30)).unwrap()
}

/// Ten minutes before the end of an hour, far from midnight.
fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 / 86_400 * 86_400 + 36_000 - 600, 0).unwrap()
}

#[tokio::test]
async fn every_window_is_enforced_across_processes_until_it_ends() {
    let (url, prefix) = redis().await;
    let one = connect(&url, &prefix, b"pepper");
    let other = connect(&url, &prefix, b"pepper");
    let now = start();
    for n in 0..5 {
        let decision = if n % 2 == 0 { &one } else { &other }.hit(ADDRESS, &RULES, now).await;
        let expected = (true, 4_u32.saturating_sub(n).min(6 - n));
        assert_eq!((decision.allowed, decision.remaining), expected, "hit {n}");
    }
    let refused = other.hit(ADDRESS, &RULES, now).await;
    assert_eq!((refused.allowed, refused.limit, refused.remaining), (false, 5, 0));
    assert_eq!(refused.retry_after, Duration::from_mins(10));
    assert!(one.hit("198.51.100.1", &RULES, now).await.allowed, "each key has its own count");

    let next_hour = now + TimeDelta::minutes(10);
    assert!(one.hit(ADDRESS, &RULES, next_hour).await.allowed);
    assert!(one.hit(ADDRESS, &RULES, next_hour).await.allowed, "rejected hits are not counted");
    let day_full = other.hit(ADDRESS, &RULES, next_hour).await;
    assert_eq!((day_full.allowed, day_full.limit), (false, 7));
    assert_eq!(day_full.retry_after, Duration::from_hours(14));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_hits_get_exactly_the_limit() {
    let (url, prefix) = redis().await;
    let limiter = connect(&url, &prefix, b"pepper");
    let rules = [Rule { limit: 10, window: HOUR }];
    let hits = (0..100).map(|_| limiter.hit("key", &rules, start()));
    let decisions = futures::future::join_all(hits).await;
    assert_eq!(decisions.iter().filter(|decision| decision.allowed).count(), 10);
}

#[tokio::test]
async fn redis_stores_no_address_and_counters_expire_with_their_window() {
    let server = KillableRedis::start().await;
    let limiter = connect(server.url(), "l", b"pepper");
    assert!(limiter.hit(ADDRESS, &RULES, start()).await.allowed);
    let keys: Vec<String> = ::redis::from_redis_value(command(server.url(), &["KEYS", "*"]).await).unwrap();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in &keys {
        assert!(key.starts_with("l:limit:") && !key.contains(ADDRESS), "{key}");
        let left: i64 = ::redis::from_redis_value(command(server.url(), &["PTTL", key]).await).unwrap();
        assert!((1..=86_401_000).contains(&left), "{left}");
    }
    let peppered = connect(server.url(), "l", b"other");
    peppered.hit(ADDRESS, &RULES, start()).await;
    let keys: Vec<String> = ::redis::from_redis_value(command(server.url(), &["KEYS", "*"]).await).unwrap();
    assert_eq!(keys.len(), 4, "the hash depends on the pepper");
}

#[tokio::test]
async fn without_redis_a_process_continues_from_the_last_known_counts_without_delay() {
    let mut server = KillableRedis::start().await;
    let limiter = connect(server.url(), "l", b"pepper");
    let now = start();
    for _ in 0..3 {
        assert!(limiter.hit(ADDRESS, &RULES, now).await.allowed);
    }
    server.kill().await;
    let began = Instant::now();
    assert!(limiter.hit(ADDRESS, &RULES, now).await.allowed);
    let decision = limiter.hit(ADDRESS, &RULES, now).await;
    assert_eq!((decision.allowed, decision.remaining), (true, 0));
    for _ in 0..100 {
        assert!(!limiter.hit(ADDRESS, &RULES, now).await.allowed);
    }
    assert!(began.elapsed() < Duration::from_secs(5), "not every call waits for Redis");
}

#[tokio::test]
async fn a_stalled_redis_delays_no_call() {
    let server = KillableRedis::start().await;
    let limiter = Limiter::connect(server.url(), "l", b"pepper").unwrap();
    assert!(limiter.hit(ADDRESS, &RULES, start()).await.allowed);
    command(server.url(), &["CLIENT", "PAUSE", "3000"]).await;
    let began = Instant::now();
    for _ in 0..4 {
        assert!(limiter.hit(ADDRESS, &RULES, start()).await.allowed);
    }
    assert!(!limiter.hit(ADDRESS, &RULES, start()).await.allowed);
    assert!(began.elapsed() < Duration::from_millis(2_500), "{:?}", began.elapsed());
}
