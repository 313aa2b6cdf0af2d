//! Redis behind Sentinels: the bus and the limiters follow a failover.

use std::pin::pin;
use std::time::{Duration, Instant};

use cache::{Bus, BusEvent, Config};
use futures::StreamExt as _;
use redis_connection::{Connection, Primary};
use sandbox::test::{RedisGroup, until, with_timeout};

use crate::support::command;

/// The URL leads nowhere: only the Sentinels know the servers.
fn config(group: &RedisGroup) -> Config {
    Config {
        password: RedisGroup::PASSWORD.into(),
        sentinels: group.sentinels(),
        master_name: RedisGroup::NAME.to_owned(),
        sentinel_password: RedisGroup::SENTINEL_PASSWORD.into(),
        ..Config::new("redis://nowhere.invalid:1", "sentinels")
    }
}

fn url(port: u16) -> String {
    format!("redis://:{}@127.0.0.1:{port}", RedisGroup::PASSWORD)
}

async fn set(connection: &Connection, value: &str) -> bool {
    let set = redis::cmd("SET").arg("key").arg(value).to_owned();
    connection.call(async |redis| set.query_async::<()>(redis).await).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_follows_the_primary_after_it_was_killed() {
    let mut group = RedisGroup::start().await;
    let config = config(&group);
    let bus = Bus::<u32>::connect(&config, &config.prefix).unwrap();
    let mut events = pin!(bus.subscribe());
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Lagged));
    bus.publish(&1).await.unwrap();
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Message(1)));

    let before = group.primary().await;
    group.kill_primary().await;
    let killed = Instant::now();
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Disconnected));
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Lagged));
    until(async || bus.publish(&2).await.is_ok()).await;
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Message(2)));
    assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
    assert_ne!(group.primary().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_and_messages_go_to_the_new_primary_after_a_switch() {
    let group = RedisGroup::start().await;
    let config = config(&group);
    let connection = Connection::new(Primary::new(&config).unwrap(), Duration::from_secs(2), 0);
    let bus = Bus::<u32>::connect(&config, &config.prefix).unwrap();
    let mut events = pin!(bus.subscribe());
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Lagged));
    assert!(set(&connection, "before").await);

    group.switch().await;
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Disconnected));
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Lagged));
    until(async || set(&connection, "after").await).await;
    let stored = command(&url(group.primary().await), &["GET", "key"]).await;
    assert_eq!(redis::from_redis_value::<String>(stored).unwrap(), "after");
    bus.publish(&3).await.unwrap();
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Message(3)));
}

/// As behind a proxy that keeps connections to a server that is a replica now.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_to_a_server_that_became_a_replica_is_replaced() {
    let group = RedisGroup::start().await;
    let primary = group.primary().await;
    let replica = group.ports().into_iter().find(|port| *port != primary).unwrap();
    let connection = Connection::new(Primary::new(url(replica)).unwrap(), Duration::from_secs(2), 0);
    let opened = async || {
        let info = command(&url(replica), &["INFO", "stats"]).await;
        let info: String = redis::from_redis_value(info).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap();
        line.trim().parse::<u32>().unwrap()
    };
    let before = opened().await;
    for _ in 0..3 {
        assert!(!set(&connection, "to a replica").await);
    }
    // One connection for each attempt, and the one that counts.
    assert!(opened().await >= before + 4, "a refused write is tried again over the same connection");
}

#[tokio::test]
async fn wrong_names_and_passwords_are_errors() {
    let group = RedisGroup::start().await;
    let right = config(&group);
    let publish = async |config: &Config| {
        Bus::<u32>::connect(config, "x").unwrap().publish(&1).await.map_err(|error| error.to_string())
    };
    assert_eq!(publish(&right).await, Ok(()));
    for wrong in [
        Config { master_name: "another".to_owned(), ..right.clone() },
        Config { password: "wrong".into(), ..right.clone() },
        Config { sentinel_password: "wrong".into(), ..right.clone() },
        Config { sentinels: vec!["127.0.0.1:1".to_owned()], ..right.clone() },
    ] {
        assert!(publish(&wrong).await.is_err(), "{wrong:?}");
    }
    let one_is_down = ["127.0.0.1:1".to_owned(), group.sentinels()[2].clone()].into();
    assert_eq!(publish(&Config { sentinels: one_is_down, ..right }).await, Ok(()));
}
