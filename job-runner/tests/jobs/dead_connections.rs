//! Connections to Postgres and Redis die without a reset: all work goes on by itself.

use std::time::{Duration, Instant};

use contract::Job;
use sandbox::test::{SilentProxy, until};

use crate::fixture::account::{Account, now};
use crate::fixture::receiver::Receiver;

/// How long the network swallows bytes.
const SILENCE: Duration = Duration::from_secs(12);
/// Within this time after it, everything goes on.
const IN_TIME: Duration = Duration::from_secs(15);

async fn stay_silent(proxies: &[&SilentProxy]) {
    for proxy in proxies {
        proxy.swallow();
    }
    tokio::time::sleep_until(tokio::time::Instant::now() + SILENCE).await;
    for proxy in proxies {
        proxy.pass();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_connections_that_die_without_a_reset_do_not_stop_deliveries() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    account.webhook(&receiver.url, None).await;
    let (proxy, url) = SilentProxy::start(&account.database.url).await;
    // Opening a connection ends as in production.
    let _running = account.run(&[&format!("store.url={url}"), "store.acquire_timeout=5s"]).await;
    account.submission().await;
    until(async || receiver.count() == 1 && account.pending().await == 0).await;
    let silent = async {
        stay_silent(&[&proxy]).await;
        Instant::now()
    };
    let submitting = async {
        for _ in 0..10 {
            account.submission().await;
        }
    };
    let (ended, ()) = tokio::join!(silent, submitting);
    until(async || account.pending().await == 0).await;
    assert!(ended.elapsed() < IN_TIME, "{:?}", ended.elapsed());
    assert!(receiver.count() >= 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_connections_that_die_without_a_reset_stop_neither_the_relay_nor_the_queue() {
    let account = Account::new().await;
    let (proxy, url) = SilentProxy::start(&account.redis.url).await;
    let _running = account.run(&[&format!("redis.url={url}")]).await;
    let order = async || {
        let mut conn = store::acquire(&account.database.db).await.unwrap();
        let changes = [contract::Change::Host { host: "a.example".to_owned() }];
        store::outbox::insert_orders(&mut conn, &[Job::PurgeEventsV1], &changes, None, now()).await.unwrap();
    };
    let is_relayed = async || account.number("select count(*) from outbox").await == 0;
    order().await;
    until(is_relayed).await;
    let silent = async {
        stay_silent(&[&proxy]).await;
        Instant::now()
    };
    let (ended, ()) = tokio::join!(silent, order());
    until(is_relayed).await;
    assert!(ended.elapsed() < IN_TIME, "{:?}", ended.elapsed());
    let queue = queue::Config::new(&account.redis.url, format!("{}:jobs", account.redis.prefix));
    let queue = queue::Queue::<Job>::connect(&queue).await.unwrap();
    until(async || queue.depth().await.unwrap() == 0).await;
    assert!(ended.elapsed() < IN_TIME, "the job ran: {:?}", ended.elapsed());
}
