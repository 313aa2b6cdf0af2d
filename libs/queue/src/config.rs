//! The settings of a queue.

use std::time::Duration;

use redis_connection::Server;

/// A queue's name and bounds.
#[derive(Clone, Debug)]
pub struct Config {
    /// The Redis server.
    pub server: Server,
    /// The queue's name, which is the prefix of its keys in Redis.
    pub name: String,
    /// Maximum number of jobs that one worker runs at a time.
    pub max_concurrent: usize,
    /// Maximum number of waiting and running jobs; more stay in Postgres.
    pub max_jobs: usize,
    /// How long a job stays leased to a worker that stops renewing it. Leases are renewed every third of this time.
    pub lease_ttl: Duration,
    /// Maximum number of times a job is started if its worker dies or its handler panics each time.
    pub max_runs: u32,
}

impl Config {
    /// Returns the production bounds for the queue `name` at a server, of which a URL is enough.
    #[must_use]
    pub fn new(server: impl Into<Server>, name: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            name: name.into(),
            max_concurrent: 256,
            max_jobs: 500,
            lease_ttl: Duration::from_secs(15),
            max_runs: 3,
        }
    }
}
