//! Section `[automations]`.

use std::time::Duration;

use serde::Deserialize;

/// Section `[automations]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Automations {
    /// Requests of one address to http triggers and resume links per minute; 0 for any number.
    pub max_requests_per_minute: u32,
    /// How long a request to an http trigger waits for the answer of its run.
    #[serde(with = "service::config::duration")]
    pub respond_timeout: Duration,
    /// How long a test waits for the end of its run.
    #[serde(with = "service::config::duration")]
    pub test_timeout: Duration,
    /// Concurrent tests of one account.
    pub max_concurrent_tests: usize,
}
