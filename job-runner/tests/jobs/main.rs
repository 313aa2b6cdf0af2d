//! Tests of the job-runner over real stores: the service runs in this process, with receivers that respond by a script.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers may panic")]

mod activity;
mod automations;
mod automations_effects;
mod certificates;
mod dead_connections;
mod domain_checks;
mod fixture;
mod form_closing;
mod idempotency;
mod mails;
mod outbox;
mod postgres_clock;
mod publishing;
mod purges;
mod queue_backlog;
mod schema;
mod webhooks;
