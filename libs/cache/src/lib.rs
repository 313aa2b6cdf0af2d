//! Caches of values from Postgres, the bus that invalidates them, and rate limiters. All of it may be lost at any
//! time: the source of truth is elsewhere, and no call here fails because Redis is unavailable.

mod approximate_limiter;
mod bus;
mod config;
mod error;
mod expiring_values;
mod limiter;
mod memo;
pub mod metrics;
mod stale_on_error;

pub use approximate_limiter::ApproximateLimiter;
pub use bus::{Bus, BusEvent, bus_channel};
pub use config::Config;
pub use error::Error;
pub use expiring_values::{ExpiringValue, ExpiringValues};
pub use limiter::{Decision, Limiter, Rule};
pub use memo::Memo;
pub use stale_on_error::{Bounds, Served, StaleOnErrorCache};
