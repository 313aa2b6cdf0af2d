//! From the outbox to the queue, and what finds the work again when the queue has lost it.

use contract::{Change, Signal};
use futures::StreamExt;
use sandbox::test::until;
use uuid::Uuid;

use crate::harness::{Account, now};
use crate::receiver::Receiver;

#[tokio::test]
async fn rows_this_version_can_not_read_stand_in_nobodys_way() {
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account
        .change(
            "insert into outbox (kind, body, due_at, created_at)
             select 'job', '{\"job\": \"of_tomorrow_v1\"}', now() - interval '1 hour', now()
             from generate_series(1, 450)",
        )
        .await;
    account.submission(true).await;
    // Long enough that only the outbox can have brought it.
    let _running = account.run(&["outbox.untried_after=1h"]).await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let later = now() + chrono::TimeDelta::hours(2);
    let kept = store::outbox::lock_jobs(&mut conn, later, 1_000).await.unwrap();
    assert_eq!(kept.len(), 450, "they wait for a version that can");
    assert!(store::outbox::lock_jobs(&mut conn, now(), 1_000).await.unwrap().is_empty(), "for a while");
}

#[tokio::test]
async fn what_the_queue_has_lost_the_sweep_finds() {
    let account = Account::new().await;
    let receiver = Receiver::silent().await;
    let webhook = account.webhook(&receiver.url, None).await;
    for _ in 0..5 {
        account.submission(true).await;
    }
    let _running = account.run(&["queue.concurrency=1", "outbox.untried_after=100ms"]).await;
    until(async || {
        let waiting: usize = account.redis(&["LLEN", "{}:jobs:waiting"]).await;
        waiting == 4 && receiver.taken().len() == 1
    })
    .await;
    let keys: Vec<String> = account.redis(&["KEYS", "{}:*"]).await;
    let words: Vec<&str> = std::iter::once("DEL").chain(keys.iter().map(String::as_str)).collect();
    let _gone: usize = account.redis(&words).await;
    receiver.release();
    until(async || {
        let deliveries = account.deliveries(webhook).await;
        deliveries.iter().all(|delivery| delivery.state == "delivered")
    })
    .await;
    let attempts: Vec<i32> =
        account.deliveries(webhook).await.iter().map(|delivery| delivery.attempts).collect();
    assert_eq!((attempts, receiver.taken().len()), (vec![1; 5], 5), "each was sent, and once");
}

#[tokio::test]
async fn a_delivery_nobody_ordered_is_found_by_the_sweep() {
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission(false).await;
    let _running = account.run(&["outbox.untried_after=50ms"]).await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!(receiver.taken().len(), 1);
}

#[tokio::test]
async fn a_job_queued_many_times_is_done_once() {
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission(true).await;
    account
        .change(
            "insert into outbox (kind, body, due_at, created_at)
             select kind, body, due_at, created_at from outbox, generate_series(1, 20)",
        )
        .await;
    let (one, other) = (account.run(&["outbox.untried_after=0s"]).await, account.run(&[]).await);
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    until(async || store::outbox::lock_jobs(&mut conn, now(), 100).await.unwrap().is_empty()).await;
    one.stop().await;
    other.stop().await;
    assert_eq!(receiver.taken().len(), 1);
}

#[tokio::test]
async fn a_signal_whose_writer_was_killed_is_sent_all_the_same() {
    let account = Account::new().await;
    let bus: cache::Bus<Signal> = cache::Bus::connect(&account.redis.url, &account.redis.prefix).unwrap();
    let mut heard = std::pin::pin!(bus.subscribe());
    assert_eq!(heard.next().await, Some(cache::BusEvent::MayHaveMissed));
    let signal = Signal::Changed(Change::Form { form_id: Uuid::nil() });
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    store::outbox::insert_signal(&mut conn, &signal, now(), now()).await.unwrap();
    let _running = account.run(&[]).await;
    let told = tokio::time::timeout(std::time::Duration::from_secs(60), heard.next()).await.unwrap();
    assert_eq!(told, Some(cache::BusEvent::Message(signal)));
    until(async || {
        let left = store::outbox::lock_signals(&mut conn, now(), 10).await.unwrap();
        left.is_empty()
    })
    .await;
}
