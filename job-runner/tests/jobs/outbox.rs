//! The outbox: relaying rows, and rows or signals that were lost.

use contract::{Change, Job, Signal};
use futures::StreamExt;
use sandbox::test::until;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixture::account::{Account, now};
use crate::fixture::receiver::Receiver;

#[tokio::test]
async fn rows_that_this_version_cannot_parse_block_no_others() {
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
    // They are postponed for a version that can parse them. Counted without locks, which would hide rows from the relay.
    let due = "select count(*) from outbox where due_at <= now()";
    let postponed = "select count(*) from outbox where due_at between now() and now() + interval '2 hours'";
    until(async || (account.number(due).await, account.number(postponed).await) == (0, 450)).await;
}

/// As after a rollback: rows of the newer release are due again and again.
#[tokio::test]
async fn a_thousand_unreadable_rows_delay_no_jobs_and_return_less_often_with_age() {
    let account = Account::new().await;
    // The rows of each kind have three ages. `relayed` tells the order in which the relay changes rows.
    account
        .change(
            "create table relayed (position bigserial, kind text, readable boolean);
             create function note() returns trigger language plpgsql as $$
             begin
                 insert into relayed (kind, readable) values (old.kind, old.body ->> 'job' = 'purge_events_v1');
                 return null;
             end $$;
             create trigger note after update or delete on outbox for each row execute function note();
             insert into outbox (kind, body, due_at, created_at)
             select kind, jsonb_build_object(kind, 'of_tomorrow_v1'), now() - interval '1 hour',
                    now() - case number % 4 when 0 then interval '0' when 1 then interval '40 minutes' else interval '1 day' end
             from generate_series(1, 1000) as number, unnest(array['job', 'signal']) as kind",
        )
        .await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    store::outbox::insert_orders(&mut conn, &[Job::PurgeEventsV1], &[], None, now()).await.unwrap();
    // 1,000 more signals, which are due after the job.
    account
        .change(
            "insert into outbox (kind, body, due_at, created_at)
             select 'signal', '{\"signal\": \"of_tomorrow_v1\"}', now(), now() from generate_series(1, 1000)",
        )
        .await;
    let _running = account.run(&[]).await;
    until(async || account.number("select count(*) from outbox where due_at <= now()").await == 0).await;
    let behind = "select count(*) from relayed where kind = 'signal'
                  and position > (select min(position) from relayed where kind = 'job' and readable)";
    // The job is in the sixth batch of jobs, so at most six batches of signals are before it.
    let behind = account.number(behind).await;
    assert!(behind >= 2_000 - 6 * 200, "{behind}");
    // Half of their age, between a minute and an hour.
    for (from, to, rows) in [(0, 3, 1_500), (15, 23, 500), (55, 63, 1_000)] {
        let postponed = format!(
            "select count(*) from outbox
             where due_at > now() + interval '{from} minutes' and due_at < now() + interval '{to} minutes'"
        );
        assert_eq!(account.number(postponed.leak()).await, rows, "after {from} to {to} minutes");
    }
}

#[tokio::test]
async fn a_signal_that_this_version_cannot_parse_waits_for_a_newer_one() {
    let account = Account::new().await;
    let signals = [
        json!({"signal": "of_tomorrow", "ids": [1]}),
        json!({"signal": "changed", "change": "of_tomorrow", "page_id": 1}),
    ];
    for signal in &signals {
        account
            .change(&format!(
                "insert into outbox (kind, body, due_at, created_at) values ('signal', '{signal}', now(), now())"
            ))
            .await;
    }
    let bus: cache::Bus<Signal> = cache::Bus::connect(&account.redis.url, &account.redis.prefix).unwrap();
    let mut events = std::pin::pin!(bus.subscribe());
    assert_eq!(events.next().await, Some(cache::BusEvent::Lagged));
    let readable = Signal::Changed(Change::Form { form_id: Uuid::nil() });
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    store::outbox::insert_signal(&mut conn, &readable, now(), now()).await.unwrap();
    let running = account.run(&[]).await;
    let event = tokio::time::timeout(std::time::Duration::from_secs(60), events.next()).await.unwrap();
    assert_eq!(event, Some(cache::BusEvent::Message(readable)), "the others don't block it");
    let waiting = "select count(*) from outbox where due_at > now() + interval '30 seconds'";
    until(async || account.number(waiting).await == 2).await;
    running.stop().await;
    let rows = "select count(*) from outbox where body->>'signal' = 'of_tomorrow' and body->'ids' = '[1]'
                or body->>'change' = 'of_tomorrow' and body->'page_id' = '1'";
    assert_eq!(account.number(rows).await, 2, "as they were written");
    let postponed = |message: &str| {
        let name = format!("job_runner_unreadable_messages_postponed_total{{message=\"{message}\"}} ");
        service::metrics::render().lines().any(|line| line.starts_with(&name) && !line.ends_with(" 0"))
    };
    assert!(postponed("signal"), "{}", service::metrics::render());
}

#[tokio::test]
async fn a_signal_that_no_version_could_parse_for_a_week_is_dropped_and_a_job_never_is() {
    let account = Account::new().await;
    account
        .change(
            "insert into outbox (kind, body, due_at, created_at) values
             ('signal', '{\"signal\": \"of_tomorrow\"}', now(), now() - interval '8 days'),
             ('signal', '{\"signal\": \"of_tomorrow\"}', now(), now() - interval '6 days'),
             ('job', '{\"job\": \"of_tomorrow_v1\"}', now(), now() - interval '800 days')",
        )
        .await;
    let _running = account.run(&[]).await;
    let postponed = "select count(*) from outbox where due_at > now() + interval '30 seconds'";
    let all = "select count(*) from outbox";
    until(async || (account.number(postponed).await, account.number(all).await) == (2, 2)).await;
}

/// A newer job-runner had relayed it, and this one claims it.
#[tokio::test]
async fn a_queued_job_that_this_version_cannot_parse_returns_to_the_outbox() {
    let account = Account::new().await;
    let name = format!("{}:jobs", account.redis.prefix);
    let queue = queue::Queue::<Value>::connect(&queue::Config::new(&account.redis.url, name)).await.unwrap();
    let (job, traceparent) = (
        json!({"job": "of_tomorrow_v1", "id": 7}),
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    );
    let task = queue::Task { id: "of_tomorrow:7".into(), job, traceparent: Some(traceparent.into()) };
    queue.push(vec![task]).await.unwrap();
    let _running = account.run(&[]).await;
    let stored = "select count(*) from outbox where kind = 'job' and due_at > now() + interval '30 seconds'
                  and body = '{\"job\": \"of_tomorrow_v1\", \"id\": 7}'
                  and traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'";
    until(async || account.number(stored).await == 1).await;
    until(async || queue.depth().await.unwrap() == 0).await;
}

#[tokio::test]
async fn a_delivery_without_a_signal_is_found_by_a_poll() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&[]).await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn a_signal_whose_writer_was_killed_is_published_by_the_relay() {
    let account = Account::new().await;
    let bus: cache::Bus<Signal> = cache::Bus::connect(&account.redis.url, &account.redis.prefix).unwrap();
    let mut events = std::pin::pin!(bus.subscribe());
    assert_eq!(events.next().await, Some(cache::BusEvent::Lagged));
    let signal = Signal::Changed(Change::Form { form_id: Uuid::nil() });
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    store::outbox::insert_signal(&mut conn, &signal, now(), now()).await.unwrap();
    let _running = account.run(&[]).await;
    let event = tokio::time::timeout(std::time::Duration::from_secs(60), events.next()).await.unwrap();
    assert_eq!(event, Some(cache::BusEvent::Message(signal)));
    until(async || {
        let remaining = store::outbox::lock_signals(&mut conn, now(), 10).await.unwrap();
        remaining.is_empty()
    })
    .await;
}
