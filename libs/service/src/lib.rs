//! The chassis: what all four services need before they can do anything of their own. It reads their settings,
//! starts and stops their components, tells the outside how they are, and hands in time and randomness, so that
//! a service is a plain `run(config, listeners, shutdown)` which tests can call as often as they like.

/// For every program that leans on this crate: answers are many small pieces, which it hands out faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod admission;
mod clock;
pub mod config;
pub mod http;
mod lifecycle;
mod listeners;
mod main_program;
pub mod metrics;
pub mod ops;
mod random;
mod readiness;
mod shutdown;
pub mod telemetry;
pub mod tls;

pub use admission::Admission;
pub use clock::Clock;
pub use lifecycle::{ExitReason, Lifecycle};
pub use listeners::Listeners;
pub use main_program::{Started, run_main};
pub use random::Rng;
pub use readiness::{Check, Readiness};
pub use shutdown::Shutdown;
