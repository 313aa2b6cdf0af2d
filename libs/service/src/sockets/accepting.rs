//! Accepts connections until a drain is over, and then those that wait in the socket's queue: closing the socket would
//! reset them, although their clients have connected.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::drain::Drain;
use crate::Shutdown;

/// Time for connections whose handshake has begun when the socket stops taking new ones.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(50);

/// A listening socket and the end of its drain.
pub struct Accepting {
    socket: Socket,
    keeps_socket: bool,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

enum Socket {
    Open(TcpListener),
    /// Not waited on any more. The flag says whether handshakes had their time.
    Closing(std::net::TcpListener, bool),
    Closed,
}

impl Accepting {
    /// Accepts from `listener` until `drain` is over after `shutdown`.
    #[must_use]
    pub fn new(listener: TcpListener, drain: Drain, shutdown: &Shutdown) -> Self {
        let shutdown = shutdown.clone();
        let over = Box::pin(async move { drain.over(&shutdown).await });
        Self { socket: Socket::Open(listener), keeps_socket: drain.keeps_socket, over }
    }

    /// Returns the next connection; `None` once the socket is closed. Failed accepts are retried.
    pub async fn next(&mut self) -> Option<(TcpStream, SocketAddr)> {
        if let Socket::Open(listener) = &mut self.socket {
            tokio::select! {
                biased;
                () = &mut self.over => self.stop(),
                // The trait's accept retries, and pauses when file descriptors run out; the socket's own does not.
                accepted = axum::serve::Listener::accept(listener) => return Some(accepted),
            }
        }
        while let Socket::Closing(listener, had_time) = &mut self.socket {
            match listener.accept() {
                Ok((stream, peer)) => match adopt(stream) {
                    Ok(stream) => return Some((stream, peer)),
                    Err(error) => tracing::warn!(%error, "lost a connection of the closing socket"),
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !*had_time => {
                    *had_time = true;
                    #[expect(clippy::disallowed_methods, reason = "handshakes complete in this time")]
                    tokio::time::sleep(HANDSHAKE_TIMEOUT).await;
                }
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        tracing::warn!(%error, "lost the connections that waited in the queue of the socket");
                    }
                    self.socket = Socket::Closed;
                }
            }
        }
        None
    }

    /// Stops taking new connections. Those that have begun are still accepted, unless another process does that.
    fn stop(&mut self) {
        let Socket::Open(listener) = std::mem::replace(&mut self.socket, Socket::Closed) else { return };
        if self.keeps_socket {
            return;
        }
        // Tokio may not know yet of a connection in the queue, so the socket itself is asked.
        match listener.into_std() {
            Ok(listener) => {
                let drops_new = drop_new_connections(&listener);
                self.socket = Socket::Closing(listener, !drops_new);
            }
            Err(error) => {
                tracing::warn!(%error, "lost the connections that waited in the queue of the socket")
            }
        }
    }
}

fn adopt(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}

/// Makes the system drop the first packet of new connections, so that none completes between the last accept and the end of
/// the socket. Their clients send it again after a second, to the next process. Returns whether that is possible.
#[cfg(target_os = "linux")]
fn drop_new_connections(listener: &std::net::TcpListener) -> bool {
    use socket2::SockFilter;

    /// Offset of the flags in a TCP header (RFC 9293, 3.1), and two of them.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    // Operations of a packet filter: load a byte, mask it, compare it, return the number of bytes to keep.
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;

    let filter = [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ];
    socket2::SockRef::from(listener).attach_filter(&filter).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn drop_new_connections(_listener: &std::net::TcpListener) -> bool {
    false
}
