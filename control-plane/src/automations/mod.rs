//! What the endpoints of automations share: run inserts in batches, waiting for the answers of runs, variables, and the
//! cache of http triggers.

mod concurrency;
mod config;
mod env;
mod http_targets;
mod pending_run;
mod request_rate;
mod run_inserts;
mod run_queue;
mod run_waiters;

pub use config::Automations;
pub use http_targets::HttpTargets;
pub use request_rate::RequestRate;
pub use run_inserts::RunInserts;
pub use run_waiters::RunWaiters;

pub(crate) use concurrency::evaluate_concurrency;
pub(crate) use env::{Env, EnvError, open_env, seal_env};
pub(crate) use http_targets::HttpTarget;
pub(crate) use pending_run::RequestedRun;
pub(crate) use run_waiters::AnsweredRun;
