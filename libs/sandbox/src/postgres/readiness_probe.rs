//! The readiness probe of Postgres: `postmaster.pid` reports it as ready, and it asks a client for a password.

use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::port::on_loopback;

/// The startup message: protocol 3.0, user `postgres`. The length includes itself.
const STARTUP_MESSAGE: &[u8] = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";

/// Returns whether the server with that process id serves that port.
pub(super) async fn is_ready(pid: u32, port: u16, data: &Path) -> bool {
    reports_ready(pid, data) && asks_for_password(port).await.unwrap_or(false)
}

/// Reads `postmaster.pid`: the process id in its first line, its state in the eighth.
fn reports_ready(pid: u32, data: &Path) -> bool {
    let pid_file = std::fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let mut lines = pid_file.lines().map(str::trim);
    lines.next() == Some(pid.to_string().as_str()) && lines.nth(6) == Some("ready")
}

async fn asks_for_password(port: u16) -> std::io::Result<bool> {
    let mut server = TcpStream::connect(on_loopback(port)).await?;
    server.write_all(STARTUP_MESSAGE).await?;
    // `R` requests authentication. While the server starts or stops, it sends `E` instead.
    Ok(server.read_u8().await? == b'R')
}
