//! A job queue on Redis, run by apalis workers. This is the only crate that depends on apalis.
//!
//! Redis holds only the jobs that are due now. Postgres is the source of truth for every job, so an emptied Redis
//! costs seconds and loses no work. The Redis state is small and bounded: a list of waiting ids, leases with
//! deadlines, and job bodies until the jobs are acknowledged.
//!
//! apalis' own Redis storage is not used; `docs/0001-own-redis-backend.md` says why.

mod ack;
mod backend;
mod config;
mod error;
mod fetcher;
mod in_process;
mod lease;
mod queue;
mod redis;
mod renewal;
mod task;
mod worker;

pub use config::Config;
pub use error::Error;
pub use in_process::InProcessQueue;
pub use queue::Queue;
pub use task::{Task, UnreadableTask};
