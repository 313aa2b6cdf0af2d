//! Whether our Postgres takes clients: its own note says so, and it asks a caller for a password.

use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::port::on_loopback;

/// Protocol 3.0, user `postgres`; the length counts itself.
const HELLO: &[u8] = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";

/// Whether the server with that process id serves that port.
pub(super) async fn answers(pid: u32, port: u16, data: &Path) -> bool {
    says_ready(pid, data) && asks_for_password(port).await.unwrap_or(false)
}

/// `postmaster.pid`: the process id in its first line, its state in the eighth.
fn says_ready(pid: u32, data: &Path) -> bool {
    let note = std::fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let mut lines = note.lines().map(str::trim);
    lines.next() == Some(pid.to_string().as_str()) && lines.nth(6) == Some("ready")
}

async fn asks_for_password(port: u16) -> std::io::Result<bool> {
    let mut server = TcpStream::connect(on_loopback(port)).await?;
    server.write_all(HELLO).await?;
    // `R`, authentication wanted; while it starts or ends it says `E` instead.
    Ok(server.read_u8().await? == b'R')
}
