//! The public handle of a queue: push, inspect, run a worker.

use std::marker::PhantomData;
use std::sync::Arc;

use futures::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::error::Error;
use crate::redis::RedisQueue;
use crate::task::{Task, UnreadableHandler, UnreadableTask};
use crate::worker;

/// A named queue of jobs of one type. Clones share its connections.
pub struct Queue<J> {
    redis: Arc<RedisQueue>,
    config: Arc<Config>,
    unreadable: UnreadableHandler,
    jobs: PhantomData<fn(J) -> J>,
}

impl<J> Clone for Queue<J> {
    fn clone(&self) -> Self {
        let unreadable = Arc::clone(&self.unreadable);
        Self {
            redis: Arc::clone(&self.redis),
            config: Arc::clone(&self.config),
            unreadable,
            jobs: PhantomData,
        }
    }
}

impl<J: Serialize + DeserializeOwned + Send + 'static> Queue<J> {
    /// Opens the queue. Fails only if the URL is invalid: while Redis is down, the connection is retried on use.
    pub async fn connect(config: &Config) -> Result<Self, Error> {
        let redis = RedisQueue::open(config)?;
        if let Err(error) = redis.depth().await {
            tracing::warn!(%error, queue = config.name, "the queue is unreachable; the connection is retried");
        }
        Ok(Self {
            redis: Arc::new(redis),
            config: Arc::new(config.clone()),
            unreadable: Arc::new(|task| async move { drop_unreadable(&task) }.boxed()),
            jobs: PhantomData,
        })
    }

    /// Lets a worker of this handle pass jobs that it can't parse to `unreadable`, which returns whether it stored them;
    /// otherwise they return to the queue. Without this they are dropped, and remain in Postgres. Other jobs run
    /// meanwhile. A job that waits for `unreadable` counts as one of `max_concurrent`, and its lease is renewed.
    #[must_use]
    pub fn on_unreadable<F>(
        mut self,
        unreadable: impl Fn(UnreadableTask) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.unreadable = Arc::new(move |task| unreadable(task).boxed());
        self
    }

    /// Pushes tasks in order until the queue is full. Returns how many tasks from the front of the list are now in
    /// the queue, including those that already were; the caller retries the rest later. After an error, some of the
    /// tasks may be in the queue.
    pub async fn push(&self, tasks: Vec<Task<J>>) -> Result<usize, Error> {
        self.redis.push(&tasks, self.config.max_jobs).await
    }

    /// Returns the number of waiting and running tasks.
    pub async fn depth(&self) -> Result<usize, Error> {
        self.redis.depth().await
    }

    /// Returns how many more tasks the queue would accept now.
    pub async fn capacity_left(&self) -> Result<usize, Error> {
        Ok(self.config.max_jobs.saturating_sub(self.depth().await?))
    }

    /// Runs tasks until `shutdown`, at most `max_concurrent` at a time. On shutdown, running tasks complete and claimed
    /// but unstarted tasks return to the queue. Redis errors are logged and retried.
    ///
    /// A task is acknowledged when `handler` returns, whatever the result: retries are scheduled in Postgres. If the
    /// worker dies or the handler panics, the lease expires and any worker runs the task again, at most `max_runs`
    /// times. Then the queue drops the task, and it remains in Postgres.
    pub async fn run_worker<H, F>(&self, handler: H, shutdown: impl Future<Output = ()>)
    where
        H: Fn(Task<J>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let handlers = (handler, Arc::clone(&self.unreadable));
        worker::run(&self.redis, &self.config, handlers, shutdown).await;
    }
}

fn drop_unreadable(task: &UnreadableTask) -> bool {
    tracing::error!(id = task.id, "dropped a job that this version can't parse");
    true
}
