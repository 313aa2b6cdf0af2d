//! The life of one worker: the fetcher claims jobs, apalis runs them, leases are renewed, completed jobs are
//! acknowledged. When the worker is dropped, its jobs are cancelled and their leases expire.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use apalis_core::error::WorkerError;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_core::worker::ext::parallelize::ParallelizeExt as _;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::ack;
use crate::backend::ChannelBackend;
use crate::config::Config;
use crate::fetcher::Fetcher;
use crate::lease::{LeasedTask, Leases};
use crate::redis::RedisQueue;
use crate::renewal;
use crate::task::{Task, UnreadableHandler};

/// How long a stopping worker tries to acknowledge its completed jobs.
const FINAL_ACK_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn run<J, H, F>(
    redis: &Arc<RedisQueue>,
    config: &Config,
    (handler, unreadable): (H, UnreadableHandler),
    shutdown: impl Future<Output = ()>,
) where
    J: DeserializeOwned + Send + 'static,
    H: Fn(Task<J>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let stop = CancellationToken::new();
    let leases = Leases::default();
    let (done, completed) = mpsc::unbounded_channel();
    let (delivered, receiver) = mpsc::unbounded_channel();
    let backend = ChannelBackend::new(receiver);
    let fetcher = Fetcher {
        redis: Arc::clone(redis),
        config: config.clone(),
        leases: leases.clone(),
        done,
        delivered,
        unreadable,
        stop: stop.clone(),
    };
    // On tasks of their own, so that a busy worker still renews and acknowledges. They end with this future.
    let _renewal = spawn(renewal::run(Arc::clone(redis), leases.clone(), config.lease_ttl));
    let acknowledging = spawn(ack::run(Arc::clone(redis), leases.clone(), completed));
    let fetching = spawn(fetcher.run());

    let working = run_jobs(&backend, move |leased| run_job(handler.clone(), leased), &config.name, &stop);
    let stopping = async {
        shutdown.await;
        stop.cancel();
    };
    tokio::join!(working, stopping);

    // The fetcher first: a claim in progress may still deliver jobs, which are not started any more.
    let _ended = fetching.await;
    let unstarted: Vec<_> = backend.close().into_iter().map(|leased| leased.lease.into_key()).collect();
    if !unstarted.is_empty()
        && let Err(error) = redis.nack(&unstarted).await
    {
        tracing::warn!(%error, jobs = unstarted.len(), "returning unstarted jobs failed; their leases will expire");
    }
    if tokio::time::timeout(FINAL_ACK_TIMEOUT, acknowledging).await.is_err() {
        tracing::warn!("acknowledging completed jobs timed out; some jobs will run again");
    }
}

/// Runs the apalis worker until `stop`. A worker that ends earlier is restarted.
pub(crate) async fn run_jobs<J, H, F>(
    backend: &ChannelBackend<J>,
    handler: H,
    name: &str,
    stop: &CancellationToken,
) where
    J: Send + 'static,
    H: Fn(J) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    while !stop.is_cancelled() {
        let handler = handler.clone();
        let stopped = stop.clone().cancelled_owned().map(Ok::<(), WorkerError>);
        let worker = WorkerBuilder::new(name).backend(backend.clone()).parallelize(spawn).build(handler);
        // Boxed, because the compiler can't prove that so deep a type is `Send`.
        let running: BoxFuture<'static, _> = worker.run_until(stopped).boxed();
        let ended = running.await;
        if !stop.is_cancelled() {
            let error = ended.err().map(|error| error.to_string());
            tracing::error!(error, queue = name, "the worker ended and is restarted");
            tokio::task::yield_now().await;
        }
    }
}

/// Runs one job. Always succeeds for apalis, because its own retries are not used.
async fn run_job<J, H, F>(handler: H, leased: LeasedTask<J>)
where
    H: Fn(Task<J>) -> F,
    F: Future<Output = ()>,
{
    let LeasedTask { task, lease } = leased;
    let id = task.id.clone();
    let result = AssertUnwindSafe(async { handler(task).await }).catch_unwind().await;
    match result {
        Ok(()) => lease.complete(),
        // Dropping the lease stops its renewal: the job runs again after it expires, at most `max_runs` times.
        Err(_panic) => tracing::error!(id, "a job panicked"),
    }
}

/// Spawns a task that is aborted when its handle is dropped.
fn spawn<F>(future: F) -> AbortOnDropHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    AbortOnDropHandle::new(tokio::spawn(future))
}
