//! From the outbox to the queue, and what finds the work again when the queue has lost it.

use contract::{Change, Job, Signal};
use futures::StreamExt;
use sandbox::test::until;
use uuid::Uuid;

use crate::harness::{Account, now};
use crate::receiver::Receiver;

#[tokio::test]
async fn rows_this_version_can_not_read_stand_in_nobodys_way() {
    let account = Account::new().await;
    account
        .change(
            "insert into outbox (kind, body, due_at, created_at)
             select 'job', '{\"job\": \"of_tomorrow_v1\"}', now() - interval '1 hour', now()
             from generate_series(1, 450)",
        )
        .await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    store::outbox::insert_orders(&mut conn, &[Job::PurgeEventsV1], &[], None, now()).await.unwrap();
    let _running = account.run(&[]).await;
    let later = now() + chrono::TimeDelta::hours(2);
    until(async || {
        let due = store::outbox::lock_jobs(&mut conn, now(), 1_000).await.unwrap();
        let kept = store::outbox::lock_jobs(&mut conn, later, 1_000).await.unwrap();
        // Not due for a while, and kept for a version that can.
        due.is_empty() && kept.len() == 450
    })
    .await;
}

#[tokio::test]
async fn a_delivery_of_which_nobody_is_told_is_found_all_the_same() {
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&[]).await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!(receiver.taken().len(), 1);
}

#[tokio::test]
async fn a_signal_whose_writer_was_killed_is_sent_all_the_same() {
    let account = Account::new().await;
    let bus: cache::Bus<Signal> = cache::Bus::connect(&account.redis.url, &account.redis.prefix).unwrap();
    let mut heard = std::pin::pin!(bus.subscribe());
    assert_eq!(heard.next().await, Some(cache::BusEvent::Lagged));
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
