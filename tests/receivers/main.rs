//! Other people's receivers: what we send must be right for libraries and platforms that know nothing of us.

mod account;
mod formats;
mod packages;
mod secrecy;
mod signatures;

/// The local runner that the tests start.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stack");
