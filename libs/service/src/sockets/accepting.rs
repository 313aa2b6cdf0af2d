//! Accepts connections until a drain is over, and then those that wait in the socket's queue: closing the socket would
//! reset them, although their clients have connected.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::drain::Draining;
use super::listening_socket::{BACKLOG, ListeningSocket};

/// Time for handshakes that have begun when the socket stops taking new ones.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(50);
/// The same for clients that are far away.
const PUBLIC_HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(500);

/// A listening socket and the end of its drain.
pub struct Accepting {
    socket: Socket,
    is_passed: bool,
    handshake_timeout: Duration,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

enum Socket {
    Open(TcpListener),
    /// Not waited on any more.
    Closing(Closing),
    Closed,
}

struct Closing {
    listener: std::net::TcpListener,
    /// Whether handshakes had their time.
    had_time: bool,
    /// How many connections may still be accepted: if the system goes on to complete new ones, as many as the queue holds.
    left: usize,
}

impl Accepting {
    /// Accepts from `socket` until the drain is over.
    ///
    /// # Errors
    /// The socket can't listen, because another process does.
    pub fn new(socket: impl Into<ListeningSocket>, draining: &Draining) -> io::Result<Self> {
        let (socket, draining): (ListeningSocket, _) = (socket.into(), draining.clone());
        let is_passed = socket.is_passed();
        Ok(Self {
            socket: Socket::Open(socket.into_listener()?),
            is_passed,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            over: Box::pin(async move { draining.over().await }),
        })
    }

    /// Gives handshakes more time at the end, because clients are not in the same network.
    #[must_use]
    pub fn from_afar(mut self) -> Self {
        self.handshake_timeout = PUBLIC_HANDSHAKE_TIMEOUT;
        self
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
        while let Socket::Closing(closing) = &mut self.socket {
            if closing.left == 0 {
                self.socket = Socket::Closed;
                break;
            }
            match closing.listener.accept() {
                Ok((stream, peer)) => {
                    closing.left -= 1;
                    match adopt(stream) {
                        Ok(stream) => return Some((stream, peer)),
                        Err(error) => tracing::warn!(%error, "lost a connection of the closing socket"),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !closing.had_time => {
                    closing.had_time = true;
                    #[expect(clippy::disallowed_methods, reason = "handshakes complete in this time")]
                    tokio::time::sleep(self.handshake_timeout).await;
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
        if self.is_passed {
            return;
        }
        // Tokio may not know yet of a connection in the queue, so the socket itself is asked.
        match listener.into_std() {
            Ok(listener) => {
                let drops_new = drop_new_connections(&listener);
                let left = if drops_new { usize::MAX } else { BACKLOG as usize };
                self.socket = Socket::Closing(Closing { listener, had_time: !drops_new, left });
            }
            Err(error) => {
                tracing::warn!(%error, "lost the connections that waited in the queue of the socket");
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

#[cfg(test)]
mod tests {
    use super::super::drain::Drain;
    use super::*;
    use crate::Shutdown;

    #[tokio::test]
    async fn a_passed_socket_works_for_the_next_process_also_after_two() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        for _process in 0..3 {
            let shutdown = Shutdown::new();
            let passed = ListeningSocket::passed(socket.try_clone().unwrap()).unwrap();
            let draining = Draining::new(Drain::default(), &shutdown);
            let mut accepting = Accepting::new(passed, &draining).unwrap();
            let _client = TcpStream::connect(address).await.unwrap();
            assert!(accepting.next().await.is_some());
            shutdown.request();
            assert!(accepting.next().await.is_none());
        }
        let waiting = TcpStream::connect(address).await.unwrap();
        assert_eq!(socket.accept().unwrap().1, waiting.local_addr().unwrap(), "its queue was not emptied");
    }

    #[tokio::test]
    async fn without_a_filter_the_end_comes_after_as_many_connections_as_the_queue_holds() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = Shutdown::new();
        let draining = Draining::new(Drain::default(), &shutdown);
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut accepting = Accepting::new(socket, &draining).unwrap();
        accepting.socket = Socket::Closing(Closing { listener, had_time: true, left: 3 });
        for _ in 0..3 {
            let _client = TcpStream::connect(address).await.unwrap();
            assert!(accepting.next().await.is_some());
        }
        let _client = TcpStream::connect(address).await.unwrap();
        assert!(accepting.next().await.is_none());
    }
}
