//! The sockets of a service. They are bound before it runs, so that a test can use port 0 and know the actual port.

use std::net::SocketAddr;

use anyhow::Context as _;

use super::drain::Drain;
use super::listening_socket::ListeningSocket;
use super::passed_sockets::{self, PassedSockets};
use crate::config::{Listen, ProxyProtocol};

/// A service's listening sockets.
#[derive(Debug)]
pub struct Listeners {
    /// Accepts the service's own traffic.
    pub main: ListeningSocket,
    /// Accepts the service's own traffic over TLS.
    pub https: Option<ListeningSocket>,
    /// Whether connections to `main` begin with a PROXY protocol header.
    pub proxy_protocol: ProxyProtocol,
    /// Whether connections to `https` begin with a PROXY protocol header.
    pub https_proxy_protocol: ProxyProtocol,
    /// Serves `/healthz`, `/readyz` and `/metrics`. Not for traffic from outside.
    pub ops: ListeningSocket,
    /// How connections to `main` and `https` end on shutdown.
    pub drain: Drain,
}

impl Listeners {
    /// Binds all addresses, except of sockets that were passed to this process (socket activation). Connections are refused
    /// until the sockets are served, so that a service which finds that it can't work has accepted none. Must be called within
    /// a Tokio runtime. The error names the address that can't be bound.
    pub fn reserve(listen: &Listen) -> anyhow::Result<Self> {
        let passed = PassedSockets::assign(passed_sockets::adopted(), listen)?;
        let open = |key, passed: Option<std::net::TcpListener>, address| match passed {
            Some(socket) => {
                ListeningSocket::passed(socket).with_context(|| format!("{key}: the passed socket"))
            }
            None => bind(key, address),
        };
        Ok(Self {
            main: open("listen.main", passed.main, listen.main)?,
            https: listen.https.map(|https| open("listen.https", passed.https, https)).transpose()?,
            proxy_protocol: listen.proxy_protocol,
            https_proxy_protocol: listen.https_proxy_protocol,
            ops: open("listen.ops", passed.ops, listen.ops)?,
            drain: listen.drain(),
        })
    }

    /// Like [`Self::reserve`], but connections wait until they are accepted.
    pub fn bind(listen: &Listen) -> anyhow::Result<Self> {
        let reserved = Self::reserve(listen)?;
        Ok(Self {
            main: reserved.main.listening().context("listen.main")?,
            https: reserved.https.map(ListeningSocket::listening).transpose().context("listen.https")?,
            ops: reserved.ops.listening().context("listen.ops")?,
            ..reserved
        })
    }

    /// Binds free ports on the loopback address.
    pub fn on_free_ports() -> anyhow::Result<Self> {
        Self::bind(&Listen::default())
    }
}

fn bind(key: &str, address: SocketAddr) -> anyhow::Result<ListeningSocket> {
    ListeningSocket::bind(address)
        .map_err(|error: std::io::Error| anyhow::anyhow!("{key} = {address}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpStream;
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn a_burst_of_connections_waits_in_the_backlog() {
        let listener = bind("listen.main", ([127, 0, 0, 1], 0).into()).unwrap().listening().unwrap();
        let address = listener.local_addr().unwrap();
        let mut burst = JoinSet::new();
        for _ in 0..500 {
            burst.spawn(TcpStream::connect(address));
        }
        // A rejected client would retry after a second.
        let connected = tokio::time::timeout(Duration::from_millis(900), burst.join_all()).await.unwrap();
        assert!(connected.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn a_reserved_socket_refuses_connections_until_it_is_served() {
        let listeners = Listeners::reserve(&Listen::default()).unwrap();
        let address = listeners.main.local_addr().unwrap();
        assert!(TcpStream::connect(address).await.is_err());
        assert!(Listeners::reserve(&Listen { main: address, ..Listen::default() }).is_ok_and(|other| {
            // The system reports a conflict of two processes when the second begins to listen.
            let _first = listeners.main.listening().unwrap();
            other.main.listening().is_err()
        }));
    }
}
