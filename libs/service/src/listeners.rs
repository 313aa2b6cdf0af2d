//! The sockets a service is handed: already bound, so that tests give it port 0 and know the port before it runs.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

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
    /// Binds both addresses. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// Names the address that can't be bound.
    pub fn bind(listen: &Listen) -> anyhow::Result<Self> {
        Ok(Self { main: bind("listen.main", listen.main)?, ops: bind("listen.ops", listen.ops)? })
    }

    /// Free ports on the loopback address.
    ///
    /// # Errors
    /// If the machine has no free port.
    pub fn on_free_ports() -> anyhow::Result<Self> {
        Self::bind(&Listen::default())
    }
}

/// Connections that were made and not yet taken up, at most; the system may have a lower limit (`net.core.somaxconn`).
/// Whoever comes when there are more tries again after a second, so that the usual 128 would show in a moment's rush.
const BACKLOG: u32 = 4_096;

fn bind(key: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A restart needn't wait until the connections of before are forgotten.
        #[cfg(not(windows))]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(|error: std::io::Error| anyhow::anyhow!("{key} = {address}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpStream;
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn a_rush_of_connections_waits_to_be_taken_up_and_is_not_sent_away() {
        let listener = bind("listen.main", ([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut rush = JoinSet::new();
        for _ in 0..500 {
            rush.spawn(TcpStream::connect(address));
        }
        // One that is sent away comes again after a second.
        let made = tokio::time::timeout(Duration::from_millis(900), rush.join_all()).await.unwrap();
        assert!(made.iter().all(Result::is_ok));
    }
}
