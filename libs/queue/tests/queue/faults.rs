//! The queue while workers die and Redis fails.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Worker, command, redis, task};
use queue::{Config, Queue, Task};
use sandbox::test::{KillableRedis, SilentProxy, until, with_timeout};
use secrecy::ExposeSecret as _;
use tokio::io::AsyncBufReadExt as _;
use tokio::sync::mpsc;

const LEASE_TTL: Duration = Duration::from_millis(1_500);

/// Starts a worker that reports each job it starts.
fn reporting_worker(queue: &Queue<u32>) -> (Worker, mpsc::UnboundedReceiver<u32>) {
    let (seen, arrived) = mpsc::unbounded_channel();
    let worker = Worker::start(queue, move |task: Task<u32>| {
        let seen = seen.clone();
        async move { seen.send(task.job).unwrap() }
    });
    (worker, arrived)
}

async fn push_until_accepted(queue: &Queue<u32>, job: u32) {
    until(async || matches!(queue.push(vec![task(job, job)]).await, Ok(1))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_of_a_dropped_worker_runs_elsewhere_after_its_lease() {
    let (url, prefix) = redis().await;
    let config = Config { lease_ttl: LEASE_TTL, ..Config::new(url, prefix) };
    let queue = Queue::<u32>::connect(&config).await.unwrap();
    let (entered, mut running) = mpsc::unbounded_channel();
    let dropped_worker = Worker::start(&queue, move |_| {
        let entered = entered.clone();
        async move {
            entered.send(()).unwrap();
            std::future::pending::<()>().await;
        }
    });
    queue.push(vec![task("a", 1)]).await.unwrap();
    with_timeout(running.recv()).await.unwrap();
    let (other, mut arrived) = reporting_worker(&queue);
    let claimed_early = tokio::time::timeout(LEASE_TTL * 3, arrived.recv()).await;
    assert!(claimed_early.is_err(), "a live worker's lease is renewed as long as the job runs");
    drop(dropped_worker);
    assert_eq!(with_timeout(arrived.recv()).await, Some(1));
    until(async || queue.depth().await.unwrap() == 0).await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_of_a_killed_process_runs_elsewhere() {
    let (url, prefix) = redis().await;
    let config = Config { lease_ttl: LEASE_TTL, ..Config::new(url, prefix) };
    let queue = Queue::<u32>::connect(&config).await.unwrap();
    queue.push(vec![task("a", 1)]).await.unwrap();
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::worker_that_never_finishes", "--ignored", "--nocapture"])
        .env("QUEUE_TEST_URL", config.server.url.expose_secret())
        .env("QUEUE_TEST_NAME", &config.name)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = tokio::io::BufReader::new(child.stdout.take().unwrap()).lines();
    while with_timeout(lines.next_line()).await.unwrap().unwrap() != "started" {}
    child.kill().await.unwrap();
    let (worker, mut arrived) = reporting_worker(&queue);
    assert_eq!(with_timeout(arrived.recv()).await, Some(1));
    until(async || queue.depth().await.unwrap() == 0).await;
    worker.stop().await;
}

/// Runs in a child process of the test above.
#[tokio::test]
#[ignore = "part of another test"]
#[expect(clippy::disallowed_methods, reason = "the parent test passes its address in the environment")]
async fn worker_that_never_finishes() {
    let (Ok(url), Ok(name)) = (std::env::var("QUEUE_TEST_URL"), std::env::var("QUEUE_TEST_NAME")) else {
        return;
    };
    let queue =
        Queue::<u32>::connect(&Config { lease_ttl: LEASE_TTL, ..Config::new(url, name) }).await.unwrap();
    let handler = |_| async {
        println!("\nstarted");
        std::future::pending::<()>().await;
    };
    queue.run_worker(handler, std::future::pending()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_survives_redis_being_killed_and_restarted_empty() {
    let mut server = KillableRedis::start().await;
    let queue = Queue::<u32>::connect(&Config::new(server.url(), "q")).await.unwrap();
    let (worker, mut arrived) = reporting_worker(&queue);
    push_until_accepted(&queue, 1).await;
    assert_eq!(with_timeout(arrived.recv()).await, Some(1));
    server.kill().await;
    assert!(queue.push(vec![task(2, 2)]).await.is_err(), "the caller learns that the push failed");
    server.restart().await;
    push_until_accepted(&queue, 3).await;
    assert_eq!(with_timeout(arrived.recv()).await, Some(3));
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_opens_and_its_worker_starts_while_redis_is_down() {
    let mut server = KillableRedis::start().await;
    server.kill().await;
    let queue = Queue::<u32>::connect(&Config::new(server.url(), "q")).await.unwrap();
    let (worker, mut arrived) = reporting_worker(&queue);
    server.restart().await;
    push_until_accepted(&queue, 1).await;
    assert_eq!(with_timeout(arrived.recv()).await, Some(1));
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_survives_redis_being_emptied_under_running_jobs() {
    let server = KillableRedis::start().await;
    let queue = Queue::<u32>::connect(&Config { lease_ttl: LEASE_TTL, ..Config::new(server.url(), "q") })
        .await
        .unwrap();
    let (entered, mut running) = mpsc::unbounded_channel();
    let gate = tokio_util::sync::CancellationToken::new();
    let held = gate.clone();
    let worker = Worker::start(&queue, move |task: Task<u32>| {
        let (entered, held) = (entered.clone(), held.clone());
        async move {
            entered.send(task.job).unwrap();
            held.cancelled().await;
        }
    });
    push_until_accepted(&queue, 1).await;
    assert_eq!(with_timeout(running.recv()).await, Some(1));
    command(server.url(), &["FLUSHALL"]).await;
    assert_eq!(queue.depth().await.unwrap(), 0);
    push_until_accepted(&queue, 2).await;
    assert_eq!(with_timeout(running.recv()).await, Some(2));
    gate.cancel();
    until(async || queue.depth().await.unwrap() == 0).await;
    push_until_accepted(&queue, 1).await;
    assert_eq!(with_timeout(running.recv()).await, Some(1), "the id is free again");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_survives_a_stall_of_two_seconds() {
    let server = KillableRedis::start().await;
    let queue = Queue::<u32>::connect(&Config::new(server.url(), "q")).await.unwrap();
    let (worker, mut arrived) = reporting_worker(&queue);
    push_until_accepted(&queue, 1).await;
    with_timeout(arrived.recv()).await.unwrap();
    command(server.url(), &["CLIENT", "PAUSE", "2000"]).await;
    let started = Instant::now();
    assert_eq!(queue.push(vec![task(2, 2)]).await.unwrap(), 1, "a slow response is no error");
    assert_eq!(with_timeout(arrived.recv()).await, Some(2));
    assert!(started.elapsed() >= Duration::from_millis(1_500), "the server did stall");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_connection_that_died_without_a_reset_stops_neither_pushes_nor_workers() {
    let (url, prefix) = redis().await;
    let (proxy, url) = SilentProxy::start(&url).await;
    let queue = Queue::<u32>::connect(&Config::new(url, prefix)).await.unwrap();
    let (worker, mut arrived) = reporting_worker(&queue);
    push_until_accepted(&queue, 1).await;
    assert_eq!(with_timeout(arrived.recv()).await, Some(1));
    proxy.swallow();
    assert!(queue.push(vec![task(2, 2)]).await.is_err());
    proxy.pass();
    let passed = Instant::now();
    push_until_accepted(&queue, 2).await;
    assert_eq!(with_timeout(arrived.recv()).await, Some(2));
    assert!(passed.elapsed() < Duration::from_secs(15), "{:?}", passed.elapsed());
    worker.stop().await;
}
