//! Stories told through all four services, as real processes over real stores.

mod deliveries;
mod demo;
mod ends;
mod faults;
mod operator;
mod publishing;
mod refusals;
mod retries;
mod runner;
mod story;
mod telemetry;

/// The local runner that the stories start.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stack");
