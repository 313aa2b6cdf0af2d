//! The job-runner over real stores: one service in this process, and receivers that answer as they are told.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod blobs;
mod chats;
mod closings;
mod crowds;
mod deliveries;
mod filled;
mod harness;
mod help;
mod idempotency;
mod leftovers;
mod notifications;
mod outbox;
mod postbox;
mod publishing;
mod purges;
mod receiver;
mod webhook_mails;
mod webhooks;
