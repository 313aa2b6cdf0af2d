//! The sockets a service is handed: already bound, so that tests give it port 0 and know the port before it runs.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::config::Listen;

/// A service's two front doors.
#[derive(Debug)]
pub struct Listeners {
    /// Takes the service's own traffic.
    pub main: TcpListener,
    /// Answers `/healthz`, `/readyz` and `/metrics`; for the inside only.
    pub ops: TcpListener,
}

impl Listeners {
    /// Binds both addresses.
    ///
    /// # Errors
    /// Names the address that can't be bound.
    pub async fn bind(listen: &Listen) -> anyhow::Result<Self> {
        Ok(Self { main: bind("listen.main", listen.main).await?, ops: bind("listen.ops", listen.ops).await? })
    }

    /// Free ports on the loopback address.
    ///
    /// # Errors
    /// If the machine has no free port.
    pub async fn on_free_ports() -> anyhow::Result<Self> {
        Self::bind(&Listen::default()).await
    }
}

async fn bind(key: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| anyhow::anyhow!("{key} = {address}: {error}"))
}
