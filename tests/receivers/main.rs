//! Deliveries verified by third-party libraries and by the chat platforms' own types.

mod account;
mod formats;
mod secrecy;
mod signatures;

use harness::Packages;

/// The local runner that the tests start.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stack");

/// The libraries and scripts that read the deliveries.
const PACKAGES: Packages =
    Packages::new(concat!(env!("CARGO_MANIFEST_DIR"), "/receivers"), env!("CARGO_TARGET_TMPDIR"));
