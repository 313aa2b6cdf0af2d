//! Tests of the queue against a real Redis, in one program that shares it.
#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod faults;
mod running;
mod sentinels;
mod support;
mod unreadable;
