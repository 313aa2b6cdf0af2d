//! A writer that sends everything an HTTP/2 connection writes during one poll in a single call.
//!
//! The HTTP library flushes after every data frame. That costs a system call, and often a packet, for each stream's
//! response. This writer buffers what is written while the connection is polled, and sends it when the poll ends.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

/// Buffered bytes after which a write has to wait. This bounds the memory held for a client that does not read.
const BYTES_MAX: usize = 64 * 1024;

/// The write half of a connection. Clones share one buffer: hyper writes to one clone, the listener flushes another.
pub(crate) struct CoalescingWriter<W>(Arc<Mutex<Buffered<W>>>);

struct Buffered<W> {
    to: W,
    bytes: Vec<u8>,
    /// Number of `bytes` that were written already.
    sent: usize,
}

impl<W> Clone for CoalescingWriter<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: AsyncWrite + Unpin> CoalescingWriter<W> {
    pub(crate) fn new(to: W) -> Self {
        Self(Arc::new(Mutex::new(Buffered { to, bytes: Vec::new(), sent: 0 })))
    }

    /// Writes the buffered bytes. While the connection can't take all of them, the task is woken to continue.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().poll_send(cx)
    }

    fn lock(&self) -> MutexGuard<'_, Buffered<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: AsyncWrite + Unpin> Buffered<W> {
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            match ready!(Pin::new(&mut self.to).poll_write(cx, &self.bytes[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.sent += written,
            }
        }
        self.bytes.clear();
        self.sent = 0;
        // A TLS stream may hold what it has encrypted; a TCP stream has nothing to flush.
        Pin::new(&mut self.to).poll_flush(cx)
    }

    /// Ready when the buffer has free space; otherwise empties the buffer first.
    fn poll_space(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.bytes.len() < BYTES_MAX { Poll::Ready(Ok(())) } else { self.poll_send(cx) }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for CoalescingWriter<W> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut buffered = self.lock();
        ready!(buffered.poll_space(cx))?;
        let before = buffered.bytes.len();
        for slice in slices {
            let space = BYTES_MAX - buffered.bytes.len();
            buffered.bytes.extend_from_slice(&slice[..slice.len().min(space)]);
        }
        Poll::Ready(Ok(buffered.bytes.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The bytes are sent when the connection's poll ends.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut buffered = self.lock();
        ready!(buffered.poll_send(cx))?;
        Pin::new(&mut buffered.to).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn holds_writes_back_until_they_are_sent_in_order() {
        let (mut reader, writer) = tokio::io::duplex(BYTES_MAX);
        let mut coalescing = CoalescingWriter::new(writer);
        for text in ["one ", "two ", "three"] {
            coalescing.write_all(text.as_bytes()).await.unwrap();
            coalescing.flush().await.unwrap();
        }
        let mut received = vec![0; 13];
        assert!(futures::poll!(std::pin::pin!(reader.read_exact(&mut received))).is_pending());
        poll_fn(|cx| coalescing.poll_send(cx)).await.unwrap();
        reader.read_exact(&mut received).await.unwrap();
        assert_eq!(received, b"one two three");
    }

    #[tokio::test]
    async fn waits_for_a_slow_reader_and_loses_nothing() {
        let (mut reader, writer) = tokio::io::duplex(100);
        let mut coalescing = CoalescingWriter::new(writer);
        let all: Vec<u8> = (0..3 * BYTES_MAX).map(|at| at.to_le_bytes()[0]).collect();
        let mut write = std::pin::pin!(async {
            coalescing.write_all(&all).await.unwrap();
            coalescing.shutdown().await.unwrap();
        });
        assert!(futures::poll!(write.as_mut()).is_pending(), "the buffer holds a third of the bytes");
        let mut received = Vec::new();
        let (_, read) = tokio::join!(write, reader.read_to_end(&mut received));
        assert_eq!(read.unwrap(), all.len());
        assert_eq!(received, all);
    }
}
