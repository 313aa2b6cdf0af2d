//! The metrics of queues.

use sandbox::test::until;

use crate::fixture::account::{Account, now};

#[tokio::test]
async fn the_right_to_measure_is_held_by_one_and_passes_on_when_it_is_dropped() {
    let account = Account::new().await;
    let db = &account.database.db;
    let acquire = || store::queue_backlog::QueueMeter::try_acquire(db);
    let first = acquire().await.unwrap();
    assert!(first.is_some() && acquire().await.unwrap().is_none());
    drop(first);
    until(async || acquire().await.unwrap().is_some()).await;
}

#[tokio::test]
async fn each_queue_is_counted_with_the_age_of_its_oldest_due_row() {
    let account = Account::new().await;
    account
        .change(
            "insert into outbox (kind, body, due_at, created_at)
             select 'job', '{}', now() + make_interval(secs => number), now() from unnest(array[-90, -10, 60]) as number;
             insert into event_purges (account_id, due_at, created_at) values (gen_random_uuid(), now() - interval '1 hour', now())",
        )
        .await;
    let mut meter =
        store::queue_backlog::QueueMeter::try_acquire(&account.database.db).await.unwrap().unwrap();
    let now = now();
    let backlogs = meter.read(now).await.unwrap();
    let found: Vec<_> = backlogs
        .iter()
        .map(|one| (one.queue.as_str(), one.due, one.oldest.map_or(0, |oldest| (now - oldest).num_minutes())))
        .collect();
    let expected = [
        ("outbox", 2, 1),
        ("deliveries", 0, 0),
        ("automation_runs", 0, 0),
        ("mails", 0, 0),
        ("trial_purges", 0, 0),
        ("event_purges", 1, 60),
    ];
    assert_eq!(found, expected);
}
