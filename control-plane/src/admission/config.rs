//! Section `[api]`.

use std::time::Duration;

use serde::Deserialize;

/// Section `[api]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// Calls of one account under way at a time; 0 for any number.
    pub max_concurrent_per_account: usize,
    /// Calls of one address under way at a time; 0 for any number.
    pub max_concurrent_per_address: usize,
    /// How long further calls wait.
    #[serde(with = "service::config::duration")]
    pub queue_timeout: Duration,
    /// Calls per second of one account, or of one address without an account; 0 for any number.
    pub max_requests_per_second: u32,
}
