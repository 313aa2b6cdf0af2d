//! The queue while Redis is healthy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Worker, keys, redis, task};
use queue::{Config, Queue, Task, UnreadableTask};
use sandbox::test::{until, with_timeout};
use tokio::sync::{Semaphore, mpsc};

async fn config() -> Config {
    let (url, prefix) = redis().await;
    Config::new(url, prefix)
}

#[tokio::test]
async fn a_job_arrives_unchanged_and_leaves_no_keys_behind() {
    let config = config().await;
    let queue = Queue::<BTreeMap<String, String>>::connect(&config).await.unwrap();
    let (seen, mut arrived) = mpsc::unbounded_channel();
    let worker = Worker::start(&queue, move |task| {
        let seen = seen.clone();
        async move { seen.send(task).unwrap() }
    });
    let sent = Task {
        id: "delivery:7:1".into(),
        job: BTreeMap::from([("to".into(), "\u{1f980} \"quoted\"".into())]),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
    };
    assert_eq!(queue.push(vec![sent.clone()]).await.unwrap(), 1);
    assert_eq!(with_timeout(arrived.recv()).await.unwrap(), sent);
    until(async || queue.depth().await.unwrap() == 0).await;
    worker.stop().await;
    assert_eq!(keys(&config).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_unfinished_id_is_accepted_once_and_a_finished_one_again() {
    let queue = Queue::<u32>::connect(&config().await).await.unwrap();
    assert_eq!(queue.push(vec![task("a", 1), task("a", 2), task("b", 3)]).await.unwrap(), 3);
    assert_eq!(
        queue.push(vec![task("a", 4)]).await.unwrap(),
        1,
        "it counts as accepted, because it is in the queue"
    );
    assert_eq!(queue.depth().await.unwrap(), 2);
    let (seen, mut arrived) = mpsc::unbounded_channel();
    let worker = Worker::start(&queue, move |task: Task<u32>| {
        let seen = seen.clone();
        async move { seen.send(task.job).unwrap() }
    });
    assert_eq!((with_timeout(arrived.recv()).await, with_timeout(arrived.recv()).await), (Some(1), Some(3)));
    until(async || queue.depth().await.unwrap() == 0).await;
    queue.push(vec![task("a", 5)]).await.unwrap();
    assert_eq!(with_timeout(arrived.recv()).await, Some(5));
    worker.stop().await;
}

#[tokio::test]
async fn a_full_queue_returns_how_many_tasks_it_accepted() {
    let config = Config { max_jobs: 250, ..config().await };
    let queue = Queue::<u32>::connect(&config).await.unwrap();
    let tasks = |ids: std::ops::Range<u32>| ids.map(|n| task(n, n)).collect::<Vec<_>>();
    assert_eq!(queue.push(tasks(0..200)).await.unwrap(), 200);
    assert_eq!(queue.capacity_left().await.unwrap(), 50);
    assert_eq!(queue.push(tasks(190..400)).await.unwrap(), 60, "ten were queued already, fifty fit");
    assert_eq!(queue.push(tasks(500..501)).await.unwrap(), 0);
    assert_eq!(queue.capacity_left().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_run_each_job_of_a_large_backlog_once() {
    const JOBS: u32 = 20_000;
    let config = Config { max_concurrent: 32, ..config().await };
    let queue = Queue::<u32>::connect(&config).await.unwrap();
    let runs: Arc<Vec<AtomicUsize>> = Arc::new((0..JOBS).map(|_| AtomicUsize::new(0)).collect());
    let finished = Arc::new(Semaphore::new(0));
    let handler = |runs: &Arc<Vec<AtomicUsize>>| {
        let (runs, finished) = (Arc::clone(runs), Arc::clone(&finished));
        move |task: Task<u32>| {
            runs[task.job as usize].fetch_add(1, Ordering::SeqCst);
            finished.add_permits(1);
            async {}
        }
    };
    let other = Queue::<u32>::connect(&config).await.unwrap();
    let workers = [Worker::start(&queue, handler(&runs)), Worker::start(&other, handler(&runs))];
    let mut pending: Vec<_> = (0..JOBS).map(|n| task(n, n)).collect();
    while !pending.is_empty() {
        let next = pending.iter().take(500).cloned().collect();
        let accepted = queue.push(next).await.unwrap();
        pending.drain(..accepted);
        assert!(queue.depth().await.unwrap() <= 500);
    }
    let all = with_timeout(finished.acquire_many(JOBS)).await.unwrap();
    drop(all);
    until(async || queue.depth().await.unwrap() == 0).await;
    for worker in workers {
        worker.stop().await;
    }
    let not_once = runs.iter().filter(|runs| runs.load(Ordering::SeqCst) != 1).count();
    assert_eq!(not_once, 0, "no worker died, so every job runs exactly once");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_jobs_run_at_a_time_than_allowed() {
    let config = Config { max_concurrent: 4, ..config().await };
    let queue = Queue::<u32>::connect(&config).await.unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, peak) = (Arc::clone(&now), Arc::clone(&most));
    let (done, mut completed) = mpsc::unbounded_channel();
    let worker = Worker::start(&queue, move |_: Task<u32>| {
        let (counted, peak, done) = (Arc::clone(&counted), Arc::clone(&peak), done.clone());
        async move {
            peak.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            counted.fetch_sub(1, Ordering::SeqCst);
            done.send(()).unwrap();
        }
    });
    queue.push((0..200).map(|n| task(n, n)).collect()).await.unwrap();
    for _ in 0..200 {
        with_timeout(completed.recv()).await.unwrap();
    }
    worker.stop().await;
    assert!((2..=4).contains(&most.load(Ordering::SeqCst)), "{most:?} at a time");
}

#[tokio::test]
async fn shutdown_completes_running_jobs_and_returns_the_others_to_the_queue() {
    let config = Config { max_concurrent: 2, ..config().await };
    let queue = Queue::<u32>::connect(&config).await.unwrap();
    let (entered, mut running) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let worker = Worker::start(&queue, move |_| {
        let (entered, held) = (entered.clone(), Arc::clone(&held));
        async move {
            entered.send(()).unwrap();
            held.acquire().await.unwrap().forget();
        }
    });
    queue.push((0..10).map(|n| task(n, n)).collect()).await.unwrap();
    with_timeout(running.recv()).await.unwrap();
    with_timeout(running.recv()).await.unwrap();
    worker.request_stop();
    gate.add_permits(2);
    worker.stop().await;
    assert!(running.try_recv().is_err(), "nothing was started after the request");
    assert_eq!(queue.depth().await.unwrap(), 8);

    let (seen, mut arrived) = mpsc::unbounded_channel();
    let next = Worker::start(&queue, move |_| {
        let seen = seen.clone();
        async move { seen.send(()).unwrap() }
    });
    for _ in 0..8 {
        with_timeout(arrived.recv()).await.unwrap();
    }
    next.stop().await;
}

#[tokio::test]
async fn a_panicking_job_runs_at_most_max_runs_times_and_affects_no_other() {
    let config = Config { lease_ttl: Duration::from_millis(200), max_runs: 3, ..config().await };
    let queue = Queue::<u32>::connect(&config).await.unwrap();
    let (seen, mut arrived) = mpsc::unbounded_channel();
    let worker = Worker::start(&queue, move |task: Task<u32>| {
        let seen = seen.clone();
        async move {
            seen.send(task.job).unwrap();
            assert!(task.job != 13, "thirteen");
        }
    });
    queue.push(vec![task("bad", 13), task("good", 1)]).await.unwrap();
    until(async || queue.depth().await.unwrap() == 0).await;
    queue.push(vec![task("later", 2)]).await.unwrap();
    let mut runs = vec![];
    while runs.last() != Some(&2) {
        runs.push(with_timeout(arrived.recv()).await.unwrap());
    }
    worker.stop().await;
    assert_eq!(runs.iter().filter(|job| **job == 13).count(), 3, "{runs:?}");
    assert_eq!(keys(&config).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_job_that_this_version_cannot_parse_is_dropped_and_the_next_one_runs() {
    let config = config().await;
    let newer = Queue::<String>::connect(&config).await.unwrap();
    newer.push(vec![task("a", "of tomorrow".into())]).await.unwrap();
    let queue = Queue::<u32>::connect(&config).await.unwrap();
    queue.push(vec![task("b", 2)]).await.unwrap();
    let (seen, mut arrived) = mpsc::unbounded_channel();
    let worker = Worker::start(&queue, move |task: Task<u32>| {
        let seen = seen.clone();
        async move { seen.send(task.job).unwrap() }
    });
    assert_eq!(with_timeout(arrived.recv()).await, Some(2));
    until(async || queue.depth().await.unwrap() == 0).await;
    worker.stop().await;
}

/// A worker of an older version beside one that knows the job.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_job_is_handed_over_or_returns_to_the_queue() {
    let (url, prefix) = redis().await;
    let newer = Queue::<String>::connect(&Config::new(url.clone(), prefix.clone())).await.unwrap();
    let (handed, mut arrived) = mpsc::unbounded_channel();
    let refusals = Arc::new(AtomicUsize::new(2));
    let older = Queue::<u32>::connect(&Config::new(url, prefix)).await.unwrap().on_unreadable(move |task| {
        let is_refused =
            refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let handed = handed.clone();
        async move {
            if !is_refused {
                handed.send(task).unwrap();
            }
            !is_refused
        }
    });
    newer.push(vec![task("a", "text".to_owned())]).await.unwrap();
    let worker = Worker::start(&older, |_| async {});
    let UnreadableTask { id, job, traceparent } = with_timeout(arrived.recv()).await.unwrap();
    assert_eq!((id.as_str(), job, traceparent), ("a", "text".into(), None), "after two refusals");
    until(async || newer.depth().await.unwrap() == 0).await;
    worker.stop().await;
}
