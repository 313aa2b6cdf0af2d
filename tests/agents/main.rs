//! Agents: official MCP clients that know nothing but the base URL, and the official conformance suite.

mod clients;
mod conformance;
mod proxy;
mod trial;

use harness::Packages;

/// The local runner that the tests start.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stack");

/// The clients and the suite.
const PACKAGES: Packages =
    Packages::new(concat!(env!("CARGO_MANIFEST_DIR"), "/agents"), env!("CARGO_TARGET_TMPDIR"));
