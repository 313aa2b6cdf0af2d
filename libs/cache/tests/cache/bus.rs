//! Messages arrive, and a subscriber that may have missed some is notified.

use std::pin::pin;
use std::time::{Duration, Instant};

use cache::{Bus, BusEvent};
use futures::StreamExt as _;
use sandbox::test::{KillableRedis, SilentProxy, until, with_timeout};

use crate::support::{command, redis};

#[tokio::test]
async fn every_subscriber_receives_messages_published_after_it_subscribed() {
    let (url, prefix) = redis().await;
    let bus = Bus::<Vec<String>>::connect(&url, &prefix).unwrap();
    bus.publish(&vec!["before".into()]).await.unwrap();
    let (mut one, mut other) = (pin!(bus.subscribe()), pin!(bus.clone().subscribe()));
    assert_eq!(with_timeout(one.next()).await, Some(BusEvent::Lagged));
    assert_eq!(with_timeout(other.next()).await, Some(BusEvent::Lagged));
    let message = vec!["page".to_owned(), "\u{e9}".to_owned()];
    bus.publish(&message).await.unwrap();
    assert_eq!(with_timeout(one.next()).await, Some(BusEvent::Message(message.clone())));
    assert_eq!(with_timeout(other.next()).await, Some(BusEvent::Message(message)));
}

#[tokio::test]
async fn ignores_other_prefixes_and_reports_unreadable_messages_as_lag() {
    let (url, prefix) = redis().await;
    let numbers = Bus::<u32>::connect(&url, &prefix).unwrap();
    let mut events = pin!(numbers.subscribe());
    with_timeout(events.next()).await;
    Bus::<u32>::connect(&url, &format!("{prefix}-other")).unwrap().publish(&1).await.unwrap();
    Bus::<String>::connect(&url, &prefix).unwrap().publish(&"of another version".into()).await.unwrap();
    numbers.publish(&2).await.unwrap();
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Lagged));
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Message(2)));
}

/// A newer release may publish a kind of message very often. How often they are reported is tested with a paused clock.
#[tokio::test]
async fn many_unreadable_messages_are_one_lag() {
    let (url, prefix) = redis().await;
    let numbers = Bus::<u32>::connect(&url, &prefix).unwrap();
    let mut events = pin!(numbers.subscribe());
    with_timeout(events.next()).await;
    let started = Instant::now();
    let texts = vec!["of another version".to_owned(); 200];
    Bus::<String>::connect(&url, &prefix).unwrap().publish_all(&texts).await.unwrap();
    numbers.publish(&2).await.unwrap();
    let mut lags = 0;
    while with_timeout(events.next()).await != Some(BusEvent::Message(2)) {
        lags += 1;
    }
    let seconds = started.elapsed().as_secs();
    assert!(lags >= 1 && lags <= 1 + seconds / 10, "{lags} in {seconds} s");
}

#[tokio::test]
async fn a_subscriber_reconnects_when_redis_returns() {
    let mut server = KillableRedis::start().await;
    server.kill().await;
    let bus = Bus::<u32>::connect(server.url(), "b").unwrap();
    assert!(bus.publish(&1).await.is_err());
    let (forward, mut events) = tokio::sync::mpsc::unbounded_channel();
    let subscription = bus.subscribe();
    tokio::spawn(async move {
        let mut subscription = pin!(subscription);
        while let Some(event) = subscription.next().await {
            forward.send(event).unwrap();
        }
    });
    for round in 0..2 {
        server.restart().await;
        assert_eq!(with_timeout(events.recv()).await, Some(BusEvent::Lagged), "round {round}");
        until(async || bus.publish(&round).await.is_ok()).await;
        assert_eq!(with_timeout(events.recv()).await, Some(BusEvent::Message(round)));
        server.kill().await;
        assert_eq!(with_timeout(events.recv()).await, Some(BusEvent::Disconnected));
    }
}

#[tokio::test]
async fn reconnects_after_the_server_closed_the_connection() {
    let server = KillableRedis::start().await;
    let bus = Bus::<u32>::connect(server.url(), "b").unwrap();
    let mut events = pin!(bus.subscribe());
    with_timeout(events.next()).await;
    command(server.url(), &["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Disconnected));
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Lagged));
    bus.publish(&3).await.unwrap();
    assert_eq!(with_timeout(events.next()).await, Some(BusEvent::Message(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_connection_that_died_without_a_reset_delays_no_request_and_is_replaced() {
    let (url, prefix) = redis().await;
    let (proxy, url) = SilentProxy::start(&url).await;
    let bus = Bus::<u32>::connect(&url, &prefix).unwrap();
    until(async || bus.publish(&1).await.is_ok()).await;
    proxy.swallow();
    let started = Instant::now();
    for _ in 0..5 {
        assert!(bus.publish_for_request(&[2]).await.is_err());
    }
    // 200 ms each, and time for a busy machine.
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    proxy.pass();
    until(async || bus.publish_for_request(&[3]).await.is_ok()).await;
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}
