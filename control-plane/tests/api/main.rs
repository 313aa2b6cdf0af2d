//! The management API over real stores: one service, in this process.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod coverage;
mod document;
mod harness;
mod help;
mod idempotency;
mod matrix;
mod narrow;
mod pages;
mod quotas;
mod trial;
mod unchanged;
