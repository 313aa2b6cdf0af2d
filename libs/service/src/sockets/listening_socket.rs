//! A listening socket of a service.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Maximum number of established connections that are not yet accepted. The system may have a lower limit
/// (`net.core.somaxconn`). A client beyond it retries after a second, so the usual 128 would delay clients in a short
/// burst.
pub(super) const BACKLOG: u32 = 4_096;

/// A socket that takes connections, or will when the service is ready to serve them.
#[derive(Debug)]
pub struct ListeningSocket {
    state: State,
    /// Another process keeps the socket too, and the next one of this service accepts from it.
    is_passed: bool,
}

#[derive(Debug)]
enum State {
    /// Connections are refused so far.
    Bound(TcpSocket),
    Listening(TcpListener),
}

impl ListeningSocket {
    /// A socket at this address that refuses connections until it is served.
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Lets a restarted service bind while old connections are in TIME_WAIT.
        #[cfg(not(windows))]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Self { state: State::Bound(socket), is_passed: false })
    }

    /// A socket that was passed to this process.
    pub(super) fn passed(socket: std::net::TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { state: State::Listening(TcpListener::from_std(socket)?), is_passed: true })
    }

    /// Begins to take connections.
    pub(super) fn listening(self) -> io::Result<Self> {
        let is_passed = self.is_passed;
        Ok(Self { state: State::Listening(self.into_listener()?), is_passed })
    }

    /// Returns whether the next process accepts from the same socket.
    pub(super) fn is_passed(&self) -> bool {
        self.is_passed
    }

    pub(super) fn into_listener(self) -> io::Result<TcpListener> {
        match self.state {
            State::Bound(socket) => {
                let address = socket.local_addr()?;
                let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
                socket.listen(BACKLOG).map_err(named)
            }
            State::Listening(listener) => Ok(listener),
        }
    }

    /// Returns the address of the socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.state {
            State::Bound(socket) => socket.local_addr(),
            State::Listening(listener) => listener.local_addr(),
        }
    }
}

impl From<TcpListener> for ListeningSocket {
    fn from(listener: TcpListener) -> Self {
        Self { state: State::Listening(listener), is_passed: false }
    }
}
