//! What a queue is told when it is opened.

use std::time::Duration;

/// A queue's name and bounds.
#[derive(Clone, Debug)]
pub struct Config {
    /// `redis://…`
    pub url: String,
    /// The queue's name: the start of each of its keys in Redis.
    pub name: String,
    /// How many jobs one worker runs at once.
    pub concurrency: usize,
    /// How many jobs may wait and run in all; more stay in Postgres.
    pub limit: usize,
    /// How long a job belongs to a worker that gives no sign of life. Renewed three times a lease.
    pub lease: Duration,
    /// How often a job may be started before it is dropped here because its worker died or its handler panicked
    /// each time.
    pub max_runs: u32,
}

impl Config {
    /// The bounds of production for the queue `name` at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            name: name.into(),
            concurrency: 256,
            limit: 500,
            lease: Duration::from_secs(15),
            max_runs: 3,
        }
    }
}
