//! Admits API calls so that one account or one address leaves room for the others: a number of calls under way at a
//! time, and optionally a rate.

mod calls;
mod config;
mod middleware;
mod rate;
pub(crate) mod rate_limit_headers;

pub use calls::{CallPermit, Calls};
pub use config::Api;
pub(crate) use middleware::{admit, hold};
pub(crate) use rate::Hit;
