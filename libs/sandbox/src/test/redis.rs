//! A Redis prefix per test.

use std::sync::atomic::{AtomicU32, Ordering};

use super::backends::announcement;
use crate::supervisor::Backend;

static COUNT: AtomicU32 = AtomicU32::new(1);

/// A prefix in the Redis that all tests of this process share.
#[derive(Debug, Clone)]
pub struct TestRedis {
    pub url: String,
    /// The prefix of this test's keys and channels, to be followed by a colon.
    pub prefix: String,
}

/// Returns a prefix for this test.
pub async fn redis() -> TestRedis {
    let url = announcement(Backend::Redis).await.url;
    TestRedis { url, prefix: format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed)) }
}
