//! One worker's life: apalis runs the jobs, the feed brings them, leases are renewed, what is done is told. When it
//! is dropped, its jobs stop with it, and lapse.

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

use crate::door::{Door, Leased};
use crate::feed::Feed;
use crate::lease::{self, Leases};
use crate::ledger::Ledger;
use crate::{Config, Task, finish};

/// How long a worker that ends tries to tell Redis what it has done.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(crate) async fn run<J, H, F>(
    ledger: &Arc<Ledger>,
    config: &Config,
    handler: H,
    shutdown: impl Future<Output = ()>,
) where
    J: DeserializeOwned + Send + 'static,
    H: Fn(Task<J>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let stop = CancellationToken::new();
    let leases = Leases::default();
    let (done, told) = mpsc::unbounded_channel();
    let (started, brought) = mpsc::unbounded_channel();
    let door = Door::new(brought);
    let feed = Feed {
        ledger: Arc::clone(ledger),
        config: config.clone(),
        leases: leases.clone(),
        done,
        started,
        stop: stop.clone(),
    };
    // On tasks of their own, so that a busy worker still renews and tells; ended with this future.
    let _renewing = spawn(lease::renew(Arc::clone(ledger), leases.clone(), config.lease));
    let finishing = spawn(finish::run(Arc::clone(ledger), leases.clone(), told));
    let feeding = spawn(feed.run());

    let working = run_jobs(&door, move |leased| run_job(handler.clone(), leased), &config.name, &stop);
    let stopping = async {
        shutdown.await;
        stop.cancel();
    };
    tokio::join!(working, stopping);

    // The feed first: a take under way may still bring jobs, which nobody will start.
    let _ended = feeding.await;
    let unstarted: Vec<_> = door.close().into_iter().map(|leased| leased.lease.into_held()).collect();
    if !unstarted.is_empty()
        && let Err(error) = ledger.give_back(&unstarted).await
    {
        tracing::warn!(%error, jobs = unstarted.len(), "jobs not started couldn't be given back: they will lapse");
    }
    if tokio::time::timeout(LAST_WORDS, finishing).await.is_err() {
        tracing::warn!("Redis couldn't be told of all that is done: some jobs will be run again");
    }
}

/// apalis until `stop`. A worker that ends earlier, for whatever reason, is started again.
pub(crate) async fn run_jobs<J, H, F>(door: &Door<J>, handler: H, name: &str, stop: &CancellationToken)
where
    J: Send + 'static,
    H: Fn(J) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    while !stop.is_cancelled() {
        let handler = handler.clone();
        let stopped = stop.clone().cancelled_owned().map(Ok::<(), WorkerError>);
        let worker = WorkerBuilder::new(name).backend(door.clone()).parallelize(spawn).build(handler);
        // Boxed: the compiler can't see that so deep a type may move between threads, unless it is told here.
        let running: BoxFuture<'static, _> = worker.run_until(stopped).boxed();
        let ended = running.await;
        if !stop.is_cancelled() {
            let error = ended.err().map(|error| error.to_string());
            tracing::error!(error, queue = name, "the worker ended and is started again");
            tokio::task::yield_now().await;
        }
    }
}

/// Always well, as far as apalis is concerned: its own retries are not used.
async fn run_job<J, H, F>(handler: H, leased: Leased<J>)
where
    H: Fn(Task<J>) -> F,
    F: Future<Output = ()>,
{
    let Leased { task, lease } = leased;
    let id = task.id.clone();
    let ran = AssertUnwindSafe(async { handler(task).await }).catch_unwind().await;
    match ran {
        Ok(()) => lease.finish(),
        // The lease is let go, not finished: the job is run again when it lapses, a bounded number of times.
        Err(_panic) => tracing::error!(id, "a job panicked"),
    }
}

/// Starts a part that stops when its handle is dropped.
fn spawn<F>(part: F) -> AbortOnDropHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    AbortOnDropHandle::new(tokio::spawn(part))
}
