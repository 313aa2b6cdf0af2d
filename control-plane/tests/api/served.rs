//! The whole service, as a process would run it.

use std::net::SocketAddr;

use control_plane::Config;
use serde_json::Value;
use service::{Listeners, Shutdown};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A running service, stopped by dropping it.
pub(crate) struct Served {
    ops: SocketAddr,
    shutdown: Shutdown,
}

impl Served {
    /// Starts the service on free ports.
    pub(crate) fn start(config: Config) -> Self {
        let (shutdown, listeners) = (Shutdown::new(), Listeners::on_free_ports().unwrap());
        let ops = listeners.ops.local_addr().unwrap();
        tokio::spawn(control_plane::run(config, listeners, shutdown.clone()));
        Self { ops, shutdown }
    }

    /// Returns the body of `/readyz`, or `None` while it does not answer.
    pub(crate) async fn readiness(&self) -> Option<Value> {
        let mut stream = TcpStream::connect(self.ops).await.ok()?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await.ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await.ok()?;
        serde_json::from_str(response.split_once("\r\n\r\n")?.1).ok()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}
