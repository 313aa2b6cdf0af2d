//! The writing end of a connection that hyper has, which tells the connection's seat how much is taken: whoever reads a
//! large answer slowly is there, and whoever doesn't read at all isn't.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

use crate::transport::connections::Connection;

/// Tells a seat of every byte that `W` takes.
pub(crate) struct CountingWriter<W> {
    to: W,
    seat: Arc<Connection>,
}

impl<W> CountingWriter<W> {
    pub(crate) fn new(to: W, seat: Arc<Connection>) -> Self {
        Self { to, seat }
    }

    fn tell(&self, taken: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &taken {
            self.seat.record_written(*bytes);
        }
        taken
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for CountingWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = Pin::new(&mut self.to).poll_write(cx, bytes);
        self.tell(taken)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let taken = Pin::new(&mut self.to).poll_write_vectored(cx, pieces);
        self.tell(taken)
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
