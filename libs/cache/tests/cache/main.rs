//! Bus and limiter against a real Redis: one program, so that both parts share what they stand on.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

mod approximate_limiter;
mod bus;
mod limiter;
mod support;
