//! Tests of the management API, in process, over real stores.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step fails the test")]

mod account;
mod activity;
mod analytics;
mod automations;
mod bad_input;
mod compound;
mod console;
mod costs;
mod document;
mod forms;
mod harness;
mod idempotency;
mod keys;
mod master_keys;
mod matrix;
mod mcp;
mod no_side_effects;
mod outages;
mod pages;
mod reference;
mod responses;
mod schema;
mod served;
mod sites;
mod submissions;
mod webhooks;
