//! The bus and the limiters against a real Redis. One test program, so that they share the server.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

mod approximate_limiter;
mod bus;
mod limiter;
mod redis_metrics;
mod sentinels;
mod support;
mod tls;
