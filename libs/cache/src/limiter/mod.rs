//! Rate limits with fixed windows, counted in Redis and, while it is unavailable, in this process.

mod local;
mod rule;
mod shared;
mod window;

pub use rule::{Decision, Rule};
pub use shared::Limiter;
