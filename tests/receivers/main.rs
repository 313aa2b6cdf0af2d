//! Deliveries verified by third-party libraries and by the chat platforms' own types.

mod account;
mod formats;
mod packages;
mod secrecy;
mod signatures;

/// The local runner that the tests start.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stack");
