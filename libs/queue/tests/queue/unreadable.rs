//! Jobs of another version, which this one can't parse.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use queue::{Config, Queue, Task, UnreadableTask};
use sandbox::test::{until, with_timeout};
use tokio::sync::mpsc;

use crate::support::{Worker, redis, task};

const LEASE_TTL: Duration = Duration::from_millis(1_500);
/// Jobs of one claim that the queue hands over at a time.
const MAX_HANDOVERS: usize = 8;

/// A queue with jobs of a newer version, and the same queue as an older version sees it.
async fn queues() -> (Queue<String>, Queue<u32>) {
    let (url, prefix) = redis().await;
    let config = Config { lease_ttl: LEASE_TTL, ..Config::new(url, prefix) };
    (Queue::connect(&config).await.unwrap(), Queue::connect(&config).await.unwrap())
}

fn newer_task(id: &str) -> Task<String> {
    task(id, "a job of another version".to_owned())
}

/// As while Postgres does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_handover_that_takes_long_delays_no_other_job_and_loses_no_lease() {
    let (newer, older) = queues().await;
    let handovers = Arc::new(Mutex::new(Vec::new()));
    let (begun, gate) = (Arc::clone(&handovers), tokio_util::sync::CancellationToken::new());
    let opened = gate.clone();
    let older = older.on_unreadable(move |UnreadableTask { id, .. }| {
        begun.lock().unwrap().push(id);
        let opened = opened.clone();
        async move {
            opened.cancelled().await;
            true
        }
    });
    // More than are handed over at a time, before and behind a job that this version can parse.
    let before: Vec<_> = (0..10).map(|id| newer_task(&format!("before {id}"))).collect();
    let behind: Vec<_> = (0..10).map(|id| newer_task(&format!("behind {id}"))).collect();
    newer.push(before).await.unwrap();
    older.push(vec![task("readable", 1)]).await.unwrap();
    newer.push(behind).await.unwrap();
    let (seen, mut arrived) = mpsc::unbounded_channel();
    let handler = move |task: Task<u32>| {
        let seen = seen.clone();
        async move { seen.send(task.job).unwrap() }
    };
    let worker = Worker::start(&older, handler.clone());
    // Another worker takes every job with an expired lease.
    let other = Worker::start(&older, handler);
    assert_eq!(with_timeout(arrived.recv()).await, Some(1), "it is in the same claim");
    until(async || older.depth().await.unwrap() == 20).await;
    until(async || handovers.lock().unwrap().len() == MAX_HANDOVERS).await;
    older.push(vec![task("later", 2)]).await.unwrap();
    assert_eq!(with_timeout(arrived.recv()).await, Some(2), "further jobs are claimed");
    let again = tokio::time::timeout(LEASE_TTL * 4, arrived.recv()).await;
    assert!(again.is_err(), "nothing runs twice");
    assert_eq!(handovers.lock().unwrap().len(), MAX_HANDOVERS, "the leases are renewed");
    gate.cancel();
    until(async || older.depth().await.unwrap() == 0).await;
    let ids = handovers.lock().unwrap().clone();
    assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (20, 20), "each was handed over once");
    worker.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_job_survives_any_number_of_workers_that_die() {
    let (newer, older) = queues().await;
    newer.push(vec![newer_task("a")]).await.unwrap();
    let (entered, mut handovers) = mpsc::unbounded_channel();
    let older = older.on_unreadable(move |_| {
        entered.send(()).unwrap();
        std::future::pending()
    });
    // A job may run three times.
    for _ in 0..5 {
        let worker = Worker::start(&older, async |_| {});
        with_timeout(handovers.recv()).await.unwrap();
        drop(worker);
    }
    let (seen, mut arrived) = mpsc::unbounded_channel();
    let worker = Worker::start(&newer, move |task| {
        let seen = seen.clone();
        async move { seen.send(task).unwrap() }
    });
    assert_eq!(with_timeout(arrived.recv()).await, Some(newer_task("a")));
    until(async || newer.depth().await.unwrap() == 0).await;
    worker.stop().await;
}
