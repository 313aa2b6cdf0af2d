//! The only door to apalis. Redis holds what is due now and nothing else: the truth about every job stands in
//! Postgres, so that an emptied Redis costs seconds and no work. What is here is small and bounded: a list of
//! waiting ids, leases with deadlines, and the jobs' bodies until they are done.
//!
//! apalis runs the jobs (its worker, behind a backend of ours); its Redis storage is not used, see the README.

mod config;
mod door;
mod feed;
mod finish;
mod lane;
mod lease;
mod ledger;
mod work;

use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use config::Config;
pub use lane::Lane;
use ledger::Ledger;

/// One job on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task<J> {
    /// Names the work, e.g. `delivery:<uuid>:<attempt>`. While a task of this id is unfinished, pushing it again
    /// changes nothing.
    pub id: String,
    /// What to do.
    pub job: J,
    /// The W3C trace context of whoever caused it.
    pub traceparent: Option<String>,
}

/// Why the queue couldn't be reached or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Redis is away, too slow, or answered with an error.
    #[error("redis: {0}")]
    Redis(#[from] redis::RedisError),
    /// No answer in time; whether it was done is not known, and doing it again does no harm.
    #[error("redis gave no answer in time")]
    Timeout,
    /// A job that can't be written as JSON; a fault of its type.
    #[error("a job can't be written down: {0}")]
    Job(#[from] serde_json::Error),
}

/// A named queue of jobs of one type. Clones share its connection.
pub struct Queue<J> {
    ledger: Arc<Ledger>,
    config: Arc<Config>,
    jobs: PhantomData<fn(J) -> J>,
}

impl<J> Clone for Queue<J> {
    fn clone(&self) -> Self {
        Self { ledger: Arc::clone(&self.ledger), config: Arc::clone(&self.config), jobs: PhantomData }
    }
}

impl<J: Serialize + DeserializeOwned + Send + 'static> Queue<J> {
    /// Opens the queue. Redis may be down: it is connected to when it is there.
    ///
    /// # Errors
    /// Only if the URL can't be understood.
    pub async fn connect(config: &Config) -> Result<Self, Error> {
        let ledger = Ledger::open(config)?;
        if let Err(error) = ledger.depth().await {
            tracing::warn!(%error, queue = config.name, "the queue can't be reached yet");
        }
        Ok(Self { ledger: Arc::new(ledger), config: Arc::new(config.clone()), jobs: PhantomData })
    }

    /// Puts tasks in, from the front of the list, until the queue holds its limit. Answers how many of them are now
    /// in the queue (those that already were, included); the caller keeps the rest and tries again later.
    ///
    /// # Errors
    /// If Redis can't be reached; some of the tasks may be in the queue all the same.
    pub async fn push(&self, tasks: Vec<Task<J>>) -> Result<usize, Error> {
        self.ledger.push(&tasks, self.config.limit).await
    }

    /// How many tasks wait or run.
    ///
    /// # Errors
    /// If Redis can't be reached.
    pub async fn depth(&self) -> Result<usize, Error> {
        self.ledger.depth().await
    }

    /// How many more tasks the queue would take now.
    ///
    /// # Errors
    /// If Redis can't be reached.
    pub async fn capacity_left(&self) -> Result<usize, Error> {
        Ok(self.config.limit.saturating_sub(self.depth().await?))
    }

    /// Runs tasks until `shutdown`, at most `concurrency` at once; then those under way end, and those not yet
    /// started go back. Redis may come and go meanwhile.
    ///
    /// A task is finished when `handler` returns, whatever came of the work: when to try again is Postgres's
    /// business. One whose worker dies, or whose handler panics, is run again after its lease, by whoever is there,
    /// but at most `max_runs` times: then it is dropped here and stays in Postgres.
    ///
    /// # Errors
    /// None at present: what goes wrong is logged and tried again.
    pub async fn work<H, F>(&self, handler: H, shutdown: impl Future<Output = ()>) -> Result<(), Error>
    where
        H: Fn(Task<J>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        work::run(&self.ledger, &self.config, handler, shutdown).await;
        Ok(())
    }
}
