//! What is kept close to the work and may be lost at any time: values loaded from Postgres, the messages that say
//! they have changed, and the counters of rate limits. Nothing here is the truth, and nothing here fails a caller
//! because Redis is away.

mod approximate_limiter;
mod bus;
mod config;
mod limiter;
mod memo;
mod stale_on_error;

pub use approximate_limiter::ApproximateLimiter;
pub use bus::{Bus, BusEvent};
pub use config::Config;
pub use limiter::{Decision, Limiter, Rule};
pub use memo::Memo;
pub use stale_on_error::{Bounds, Served, StaleOnErrorCache};

/// Why something in Redis couldn't be reached or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Redis is away, or answered with an error.
    #[error("redis: {0}")]
    Redis(#[from] redis::RedisError),
    /// No answer in time.
    #[error("redis gave no answer in time")]
    Timeout,
    /// A message that can't be written as JSON; a fault of its type.
    #[error("a message can't be written down: {0}")]
    Message(#[from] serde_json::Error),
}
