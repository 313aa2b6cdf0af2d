//! A writer that reports the bytes it writes to its connection's entry in the connection table.
//!
//! The table uses the count to tell a client that reads a large response slowly from one that does not read at all.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

use super::connections::Connection;

/// Counts every byte that `W` accepts.
pub(crate) struct CountingWriter<W> {
    to: W,
    connection: Arc<Connection>,
}

impl<W> CountingWriter<W> {
    pub(crate) fn new(to: W, connection: Arc<Connection>) -> Self {
        Self { to, connection }
    }

    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.connection.record_written(*bytes);
        }
        written
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for CountingWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.to).poll_write(cx, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.to).poll_write_vectored(cx, slices);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.to.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_shutdown(cx)
    }
}
