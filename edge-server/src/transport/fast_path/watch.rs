//! Waits for I/O or work while watching the connection's disposition.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Poll, Waker};

use tokio::io::{AsyncRead, AsyncReadExt};

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
        stream: &mut (impl AsyncRead + Unpin),
        unread: &mut Vec<u8>,
    ) -> Option<io::Result<usize>> {
        poll_fn(|cx| match self.connection.poll_disposition(&mut self.waker, cx) {
            Disposition::KeepOpen => {
                unread.reserve_exact(READ_BYTES.saturating_sub(unread.len()));
                let read = pin!(stream.read_buf(unread)).poll(cx);
                if read.is_pending() && unread.is_empty() {
                    *unread = Vec::new();
                }
                read.map(Some)
            }
            Disposition::CloseWhenIdle | Disposition::Abort => Poll::Ready(None),
        })
        .await
    }

    /// Awaits `work`; `None` if the connection is to be aborted.
    pub(super) async fn unless_aborted<F: Future>(&mut self, mut work: Pin<&mut F>) -> Option<F::Output> {
        poll_fn(|cx| match self.connection.poll_disposition(&mut self.waker, cx) {
            Disposition::KeepOpen | Disposition::CloseWhenIdle => work.as_mut().poll(cx).map(Some),
            Disposition::Abort => Poll::Ready(None),
        })
        .await
    }
}
