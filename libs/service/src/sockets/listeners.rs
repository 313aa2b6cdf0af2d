//! The sockets of a service. They are bound before it runs, so that a test can use port 0 and know the actual port.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpSocket};

use super::drain::Drain;
use super::passed_sockets::PassedSockets;
use crate::config::{Listen, ProxyProtocol};

/// A service's listening sockets.
#[derive(Debug)]
pub struct Listeners {
    /// Accepts the service's own traffic.
    pub main: TcpListener,
    /// Accepts the service's own traffic over TLS.
    pub https: Option<TcpListener>,
    /// Whether connections to `main` begin with a PROXY protocol header.
    pub proxy_protocol: ProxyProtocol,
    /// Whether connections to `https` begin with a PROXY protocol header.
    pub https_proxy_protocol: ProxyProtocol,
    /// Serves `/healthz`, `/readyz` and `/metrics`. Not for traffic from outside.
    pub ops: TcpListener,
    /// How connections to `main` and `https` end on shutdown.
    pub drain: Drain,
}

impl Listeners {
    /// Binds all addresses, except of sockets that were passed to this process (socket activation). Must be called
    /// within a Tokio runtime. The error names the address that can't be bound.
    pub fn bind(listen: &Listen) -> anyhow::Result<Self> {
        let passed = PassedSockets::take(listen)?;
        let drain = Drain { keeps_socket: passed.main.is_some(), ..listen.drain() };
        let open = |key, passed: Option<std::net::TcpListener>, address| match passed {
            Some(socket) => {
                TcpListener::from_std(socket).with_context(|| format!("{key}: the passed socket"))
            }
            None => bind(key, address),
        };
        Ok(Self {
            main: open("listen.main", passed.main, listen.main)?,
            https: listen.https.map(|https| open("listen.https", passed.https, https)).transpose()?,
            proxy_protocol: listen.proxy_protocol,
            https_proxy_protocol: listen.https_proxy_protocol,
            ops: open("listen.ops", passed.ops, listen.ops)?,
            drain,
        })
    }

    /// Binds free ports on the loopback address.
    pub fn on_free_ports() -> anyhow::Result<Self> {
        Self::bind(&Listen::default())
    }
}

/// Maximum number of established connections that are not yet accepted. The system may have a lower limit
/// (`net.core.somaxconn`). A client beyond it retries after a second, so the usual 128 would delay clients in a short
/// burst.
const BACKLOG: u32 = 4_096;

fn bind(key: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Lets a restarted service bind while old connections are in TIME_WAIT.
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
    async fn a_burst_of_connections_waits_in_the_backlog() {
        let listener = bind("listen.main", ([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut burst = JoinSet::new();
        for _ in 0..500 {
            burst.spawn(TcpStream::connect(address));
        }
        // A rejected client would retry after a second.
        let connected = tokio::time::timeout(Duration::from_millis(900), burst.join_all()).await.unwrap();
        assert!(connected.iter().all(Result::is_ok));
    }
}
