//! A Redis prefix per test.

use std::sync::atomic::{AtomicU32, Ordering};

use super::backends::announced;
use crate::supervisor::Backend;

static COUNT: AtomicU32 = AtomicU32::new(1);

/// Room in a Redis shared with the other tests of this process.
#[derive(Debug, Clone)]
pub struct TestRedis {
    /// `redis://…`
    pub url: String,
    /// What the names of this test's keys and channels must begin with, followed by a colon.
    pub prefix: String,
}

/// A prefix of this test's own.
pub async fn redis() -> TestRedis {
    let url = announced(Backend::Redis).await.url;
    TestRedis { url, prefix: format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed)) }
}
