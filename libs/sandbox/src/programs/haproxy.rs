//! HAProxy for tests: installed, or else unpacked from Debian's package into the user's cache.

use std::process::Command;

use anyhow::Result;

use super::{debian, on_path};

/// Returns the command that runs HAProxy, or why it can't be had here, as without a network.
pub fn haproxy() -> Result<Command> {
    if let Some(installed) = on_path("haproxy") {
        return Ok(Command::new(installed));
    }
    let unpacked = debian::unpacked("haproxy")?;
    let mut command = Command::new(unpacked.program("usr/sbin/haproxy"));
    command.env("LD_LIBRARY_PATH", unpacked.library_path()?);
    Ok(command)
}
