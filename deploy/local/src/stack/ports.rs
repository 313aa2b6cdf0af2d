//! The ports that a user chooses.

use anyhow::{Context, Result};

/// Fails unless a port of this machine can be bound.
pub(super) fn check_is_free(port: u16) -> Result<()> {
    let bound = std::net::TcpListener::bind(("127.0.0.1", port));
    bound.map(drop).with_context(|| {
        format!("port {port} can't be used; choose another with --port or --https-port, or 0 for any")
    })
}
