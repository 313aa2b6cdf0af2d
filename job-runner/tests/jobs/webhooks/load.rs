//! Many deliveries at a time: none is lost, none blocks another, and none is attempted forever.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use sandbox::test::{eventually, until, with_timeout};
use store::deliveries::{AttemptOutcome, ClaimLimit, claim, complete_attempts, list_due};
use uuid::Uuid;

use crate::fixture::account::{Account, lease, now};
use crate::fixture::receiver::Receiver;

/// Inserts `count` overdue retries for each webhook of the account, as after downtime.
async fn overdue(account: &Account, count: usize) {
    let statement = format!(
        "insert into deliveries (id, account_id, webhook_id, event, payload, attempts, next_attempt_at, created_at)
         select gen_random_uuid(), account_id, id, 'submission.created', '{{\"data\": {{\"fields\": {{}}}}}}', 3,
                now() - interval '1 hour' * random(), now() - interval '2 hours'
         from webhooks, generate_series(1, {count}) where account_id = '{}'",
        account.id
    );
    account.change(&statement).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_retries_that_came_due_during_downtime_are_all_delivered() {
    const COUNT: usize = 20_000;
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    overdue(&account, COUNT).await;
    let _running = account.run(&[]).await;
    let mut delivered = 0;
    while delivered < COUNT {
        // The timeout applies to each step of progress, because the machine may be slow.
        delivered = eventually(async || Some(receiver.count()).filter(|count| *count > delivered)).await;
    }
    let ids: BTreeSet<_> =
        receiver.received().iter().map(|one| one.header("webhook-id").to_owned()).collect();
    assert_eq!((ids.len(), receiver.count()), (COUNT, COUNT), "each of them, and once");
    until(async || account.claim(&lease(now())).await.is_empty() && account.pending().await == 0).await;
    assert!(
        account
            .deliveries(webhook)
            .await
            .iter()
            .all(|one| (one.attempts, one.state.as_str()) == (4, "delivered"))
    );
    // The queue is not stuck: the next delivery is sent at once.
    account.submission().await;
    until(async || receiver.count() == COUNT + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_unresponsive_receivers_delay_no_healthy_one() {
    let account = Account::new().await;
    let unresponsive = Receiver::stalled().await;
    for number in 0..100 {
        account.webhook(&format!("{}&number={number}", unresponsive.url), None).await;
    }
    overdue(&account, 10).await;
    let running = account.run(&["webhooks.timeout=60s"]).await;
    // Each gets a few attempts until it is known to be slow.
    until(async || unresponsive.count() >= 400).await;
    let healthy = Receiver::responding([]).await;
    let webhook = account.webhook(&healthy.url, None).await;
    for count in 1..=30 {
        account.submission().await;
        until(async || healthy.count() == count).await;
    }
    until(async || account.deliveries(webhook).await.iter().all(|one| one.state == "delivered")).await;
    assert!(account.attempts_ended().await >= 30);
    unresponsive.release();
    running.stop().await;
}

#[tokio::test]
async fn deliveries_do_not_need_redis() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    let closed_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    account.submission().await;
    let running = account.run(&[&format!("redis.url=redis://{closed_port}")]).await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    account.submission().await;
    until(async || receiver.count() == 2).await;
    running.request_stop();
}

#[tokio::test]
async fn a_delivery_whose_workers_all_die_fails_when_its_schedule_is_exhausted() {
    let account = Account::new().await;
    let webhook = account.webhook("https://example.com", None).await;
    account.submission().await;
    for attempt in 1..=2 {
        let claimed = account.claim(&lease(now())).await;
        assert_eq!(claimed.iter().map(|one| one.attempt).collect::<Vec<_>>(), [attempt]);
    }
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "failed").await;
    assert_eq!(delivery.error_class.as_deref(), Some("interrupted"));
}

#[tokio::test]
async fn a_claim_returns_deliveries_of_each_webhook_up_to_its_limit() {
    let account = Account::new().await;
    let busy = account.webhook("https://a.example", None).await;
    overdue(&account, 1_000).await;
    let quiet = account.webhook("https://b.example", None).await;
    account.submission().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let lease = lease(now() + TimeDelta::minutes(1));
    let mut due = list_due(&mut conn, lease.now).await.unwrap();
    due.sort();
    assert_eq!(due, [busy, quiet]);
    let limit = |webhook_id, places| ClaimLimit { webhook_id, limit: places };
    let limits = [limit(busy, 2), limit(quiet, 5), limit(Uuid::nil(), 9)];
    let mut claimed: Vec<_> =
        claim(&mut conn, &lease, &limits).await.unwrap().iter().map(|one| one.webhook_id).collect();
    claimed.sort();
    assert_eq!(claimed, [busy, busy, quiet]);
    assert_eq!(list_due(&mut conn, lease.now).await.unwrap(), [busy], "the other's delivery is in flight");
    account.change(&format!("update webhooks set is_active = false where id = '{busy}'")).await;
    assert!(claim(&mut conn, &lease, &limits).await.unwrap().is_empty());
    assert!(list_due(&mut conn, lease.now).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn completing_a_few_of_many_deliveries_reads_only_those_also_without_statistics() {
    let account = Account::new().await;
    // Otherwise Postgres may gather statistics while the deliveries are inserted.
    account.change("alter table deliveries set (autovacuum_enabled = false)").await;
    account.webhook("https://example.com", None).await;
    overdue(&account, 5_000).await;
    let begun = account.claim(&lease(now() + TimeDelta::minutes(1))).await;
    assert!(!begun.is_empty());
    let few = begun.iter().take(20);
    let ended: Vec<_> = few.map(|one| (one.delivery_id, one.attempt, delivered())).collect();
    let mut tx = store::begin(&account.database.db).await.unwrap();
    complete_attempts(&mut tx, &ended).await.unwrap();
    let read = "select (seq_tup_read + idx_tup_fetch)::bigint from pg_stat_xact_user_tables where relname = 'deliveries'";
    let read: i64 = sqlx::query_scalar(read).fetch_one(&mut *tx).await.unwrap();
    assert!((20..1_000).contains(&read), "{read} rows were read to end 20 of 5,000");
    store::commit(tx).await.unwrap();
    assert_eq!(account.pending().await, 4_980);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_receiver_with_a_backlog_gets_up_to_eight_attempts_at_a_time() {
    const COUNT: usize = 60;
    let account = Account::new().await;
    // More than a third of the timeout.
    let receiver = Receiver::slow(Duration::from_millis(1_100)).await;
    account.webhook(&receiver.url, None).await;
    overdue(&account, COUNT).await;
    let _running = account.run(&["webhooks.timeout=3s"]).await;
    until(async || account.pending().await == 0).await;
    assert_eq!((receiver.count(), receiver.most_at_a_time()), (COUNT, 8));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_receiver_under_steady_load_keeps_no_backlog_and_does_not_slow_a_fast_one() {
    // A third of the timeout; four events come meanwhile.
    const RESPONSE_TIME: Duration = Duration::from_millis(400);
    /// Sent before the backlog is looked at: enough to lose and regain attempts.
    const WARM_UP: usize = 60;
    /// At one attempt at a time, 300 of these would wait.
    const MAX_SENT: usize = 400;
    let account = Account::new().await;
    let (slow, fast) = (Receiver::slow(RESPONSE_TIME).await, Receiver::responding([]).await);
    account.webhook(&slow.url, None).await;
    account.webhook(&fast.url, None).await;
    let _running = account.run(&["webhooks.timeout=1200ms"]).await;
    let mut events = service::ticks(RESPONSE_TIME / 4);
    let mut sent = 0;
    // On a busy machine both fall behind for a while, but only a growing backlog is never caught up with.
    while sent < WARM_UP || sent > slow.count() + 8 || sent > fast.count() + 1 {
        assert!(sent < MAX_SENT, "of {sent} events, {} and {} were delivered", slow.count(), fast.count());
        events.tick().await;
        account.submission().await;
        sent += 1;
    }
    assert!(slow.most_at_a_time() <= 8);
    until(async || account.pending().await == 0).await;
}

/// The outcome of an attempt that was delivered.
fn delivered() -> AttemptOutcome {
    AttemptOutcome {
        status_code: Some(200),
        duration_ms: 1,
        error_class: None,
        response_body: None,
        at: now(),
        next_attempt_at: None,
        request: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_attempt_waits_for_no_lock_so_it_cannot_deadlock_with_a_deletion() {
    let account = Account::new().await;
    account.webhook("https://example.com", None).await;
    overdue(&account, 2).await;
    let begun = account.claim(&lease(now() + TimeDelta::minutes(1))).await;
    let ended: Vec<_> = begun.iter().map(|one| (one.delivery_id, one.attempt, delivered())).collect();
    // A deletion has reached the first and will reach the second one.
    let mut deletion = store::begin(&account.database.db).await.unwrap();
    let delete = "delete from deliveries where id = $1";
    sqlx::query(delete).bind(begun[0].delivery_id).execute(&mut *deletion).await.unwrap();
    let mut completion = store::begin(&account.database.db).await.unwrap();
    let locked = with_timeout(complete_attempts(&mut completion, &ended)).await.unwrap();
    assert_eq!(locked, [begun[0].delivery_id], "the other one is stored");
    store::commit(completion).await.unwrap();
    sqlx::query(delete).bind(begun[1].delivery_id).execute(&mut *deletion).await.unwrap();
    store::commit(deletion).await.unwrap();
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    assert!(complete_attempts(&mut conn, &ended).await.unwrap().is_empty(), "deleted ones are dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_result_of_an_attempt_is_stored_once_its_delivery_is_no_longer_locked() {
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&[]).await;
    until(async || receiver.count() == 1).await;
    let mut holder = store::begin(&account.database.db).await.unwrap();
    sqlx::query("select from deliveries for update").fetch_all(&mut *holder).await.unwrap();
    receiver.release();
    let other = Receiver::responding([]).await;
    account.webhook(&other.url, None).await;
    account.submission().await;
    until(async || account.attempts_ended().await == 2).await;
    assert_eq!(account.deliveries(webhook).await.iter().filter(|one| one.state == "pending").count(), 1);
    store::rollback(holder).await.unwrap();
    until(async || account.pending().await == 0).await;
    assert_eq!(receiver.count(), 2, "nothing was sent twice");
}
