//! Waits for I/O or work while watching the connection's disposition.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Poll, Waker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::transport::connections::{Connection, Disposition};

/// Size of the read buffer; hyper starts with the same.
pub(super) const READ_BYTES: usize = 8 * 1024;

/// A connection's disposition, and the waker registered for its changes.
pub(super) struct Watch<'a> {
    pub(super) connection: &'a Connection,
    pub(super) waker: Option<Waker>,
}

impl Watch<'_> {
    /// Reads more bytes; `None` if the connection is to be closed. While nothing arrives, `unread` has no buffer: most
    /// connections are idle most of the time.
    pub(super) async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        unread: &mut Vec<u8>,
    ) -> Option<io::Result<usize>> {
        poll_fn(|cx| match self.connection.poll_disposition(&mut self.waker, cx) {
            Disposition::KeepOpen | Disposition::CloseAfterResponse => {
                unread.reserve_exact(READ_BYTES.saturating_sub(unread.len()));
                let read = pin!(stream.read_buf(unread)).poll(cx);
                if read.is_pending() {
                    // A TLS stream may have to answer what it read, such as a request to renegotiate.
                    let _fails_again_on_read = Pin::new(&mut *stream).poll_flush(cx);
                    if unread.is_empty() {
                        *unread = Vec::new();
                    }
                }
                read.map(Some)
            }
            Disposition::CloseWhenIdle | Disposition::Abort => Poll::Ready(None),
        })
        .await
    }

    /// Closes the stream. A TLS client that reads nothing is not waited for once the connection is to be aborted.
    pub(super) async fn close(&mut self, stream: &mut (impl AsyncWrite + Unpin)) {
        poll_fn(|cx| match Pin::new(&mut *stream).poll_shutdown(cx) {
            Poll::Pending if self.connection.poll_disposition(&mut self.waker, cx) != Disposition::Abort => {
                Poll::Pending
            }
            _closed_or_aborted => Poll::Ready(()),
        })
        .await;
    }

    /// Awaits `work`; `None` if the connection is to be aborted.
    pub(super) async fn unless_aborted<F: Future>(&mut self, mut work: Pin<&mut F>) -> Option<F::Output> {
        poll_fn(|cx| match self.connection.poll_disposition(&mut self.waker, cx) {
            Disposition::Abort => Poll::Ready(None),
            _going_on => work.as_mut().poll(cx).map(Some),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;
    use std::time::{Duration, Instant};

    use service::config::load;
    use service::{Drain, Draining, Shutdown};

    use super::*;
    use crate::config::{Config, DEFAULTS};
    use crate::transport::connections::ConnectionTable;

    /// A client that reads nothing, so that not even the end of the stream can be sent.
    struct Stuck;

    impl AsyncWrite for Stuck {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_does_not_keep_a_closed_connection_open() {
        let config: Config = load(DEFAULTS, &service::config::Sources::default()).unwrap().config;
        let drain = Drain { timeout: Duration::ZERO, ..Drain::default() };
        let table = ConnectionTable::new(config.connections, Draining::new(drain, &Shutdown::new()));
        let guard = table.insert(None, Instant::now());
        let mut watch = Watch { connection: &guard.connection, waker: None };
        let mut stream = Stuck;
        let mut closing = pin!(watch.close(&mut stream));
        assert!(futures::poll!(closing.as_mut()).is_pending());
        assert_eq!(table.drain().await, 1, "aborted");
        closing.await;
    }
}
