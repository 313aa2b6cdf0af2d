//! Measures latency, throughput and idle cost of a queue on a running Redis:
//! `cargo run --release -p queue --example measure -- redis://127.0.0.1:6379`
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints its measurements")]

use std::time::{Duration, Instant};

use queue::{Config, Queue, Task};
use tokio::sync::mpsc;

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let config = Config::new(url, format!("measure-{}", std::process::id()));
    let queue = Queue::<u64>::connect(&config).await.unwrap();
    let (sender, mut started) = mpsc::unbounded_channel();
    let worker = queue.clone();
    let running = tokio::spawn(async move {
        let handler = move |_task| {
            sender.send(Instant::now()).unwrap();
            async {}
        };
        worker.run_worker(handler, std::future::pending()).await;
    });

    idle(Duration::from_secs(10)).await;

    let mut latencies = Vec::new();
    for n in 0..1_000 {
        pause(Duration::from_millis(5)).await;
        let pushed = Instant::now();
        queue.push(vec![task(n)]).await.unwrap();
        latencies.push(started.recv().await.unwrap() - pushed);
    }
    latencies.sort_unstable();
    println!("push to start, idle: p50 {:?}, p99 {:?}", latencies[500], latencies[990]);

    const JOBS: u64 = 100_000;
    let (start, cpu) = (Instant::now(), cpu_time());
    let mut next = 0;
    while next < JOBS {
        let batch = (next..JOBS.min(next + 250)).map(|n| task(1_000 + n)).collect();
        next += queue.push(batch).await.unwrap() as u64;
    }
    for _ in 0..JOBS {
        started.recv().await.unwrap();
    }
    let per_second = JOBS as f64 / start.elapsed().as_secs_f64();
    let cpu_each = (cpu_time() - cpu) / JOBS as u32;
    println!("throughput: {per_second:.0} jobs/s, {cpu_each:?} of this process's CPU a job");
    running.abort();
}

async fn idle(time: Duration) {
    let before = cpu_time();
    pause(time).await;
    let share = (cpu_time() - before).as_secs_f64() / time.as_secs_f64();
    println!("idle: {:.2} % of one core", share * 100.0);
}

fn task(n: u64) -> Task<u64> {
    Task { id: n.to_string(), job: n, traceparent: None }
}

#[expect(clippy::disallowed_methods, reason = "the pause is part of the measurement")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Returns the user and system time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
