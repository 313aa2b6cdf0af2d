//! Tests over real databases: each test has its own, in one Postgres.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod accounts;
mod analytics;
mod automations;
mod connections;
mod content;
mod idempotency;
mod schema;
mod submissions;
