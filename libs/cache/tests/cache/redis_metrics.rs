//! The metrics of connections to Redis.

use std::time::Duration;

use instruments::{declare, render};
use redis_connection::{Connection, Primary};
use sandbox::test::{KillableRedis, until};

/// Returns the value of a series, zero if there is none.
fn value(series: &str) -> f64 {
    let text = render();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

fn requests(result: &str) -> f64 {
    value(&format!("webruntime_store_request_seconds_count{{result=\"{result}\",store=\"redis\"}}"))
}

async fn ping(connection: &Connection) -> bool {
    connection.call(async |redis| redis::cmd("PING").query_async::<String>(redis).await).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_was_away_counts_errors_and_one_reconnect() {
    declare(&[cache::metrics::ALL]);
    let mut redis = KillableRedis::start().await;
    let connection = Connection::new(Primary::new(redis.url()).unwrap(), Duration::from_secs(5), 0);
    let (answers, errors, reconnects) =
        (requests("ok"), requests("error"), value("webruntime_redis_reconnects_total"));
    assert!(ping(&connection).await);
    assert!(requests("ok") > answers);
    redis.kill().await;
    assert!(!ping(&connection).await && !ping(&connection).await);
    assert!(requests("error") >= errors + 2.0);
    redis.restart().await;
    until(async || ping(&connection).await).await;
    assert!(value("webruntime_redis_reconnects_total") > reconnects);
}
