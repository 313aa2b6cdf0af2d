//! End-to-end stories through all four services, as real processes over real stores.

mod admin_commands;
mod automations;
mod custom_domain;
mod deliveries;
mod demo;
mod early_refusals;
mod examples;
mod expired_trials;
mod faults;
mod local_runner;
mod next_walk;
mod previews;
mod publishing;
mod restarts;
mod retries;
mod story;
mod telemetry;

/// The local runner that the tests start.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stack");
