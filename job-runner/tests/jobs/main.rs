//! The job-runner over real stores: one service in this process, and receivers that answer as they are told.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod deliveries;
mod harness;
mod idempotency;
mod outbox;
mod receiver;
