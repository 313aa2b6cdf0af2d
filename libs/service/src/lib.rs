//! The runtime of the four services: settings, component lifecycle, sockets, telemetry, health endpoints, clock and
//! randomness. A service itself is a plain `run(config, listeners, shutdown)`, which tests can call as often as they
//! like.

/// The allocator of every program that depends on this crate: responses are many small allocations, which mimalloc serves
/// faster than the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod admission;
mod clock;
pub mod config;
mod every;
pub mod http;
mod lifecycle;
mod main_program;
pub mod metrics;
pub mod open_files;
pub mod ops;
mod random;
mod readiness;
mod rounds;
mod shutdown;
mod sockets;
pub mod telemetry;
pub mod tls;

pub use admission::Admission;
pub use clock::Clock;
pub use every::{clock_sync, every, master_keys, schema, ticks, ticks_after};
pub use lifecycle::{ExitReason, Lifecycle};
pub use main_program::{Started, run_main};
pub use random::Rng;
pub use readiness::{Check, Readiness};
pub use rounds::Rounds;
pub use shutdown::Shutdown;
pub use sockets::{
    Accepting, Drain, Draining, EarlyRequest, Listeners, ListeningSocket, adopt_passed_sockets,
};
