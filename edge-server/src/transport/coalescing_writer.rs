//! What HTTP/2 has to say at a time, said at once.
//!
//! The library flushes after every frame of data, which makes one call into the kernel, and often one packet, of every
//! stream's answer. Here what is written while a connection has its turn is gathered, and goes out when it has ended.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

/// So much is gathered before it has to go out, and so much more nobody can make us hold who doesn't read.
const BYTES_MAX: usize = 64 * 1024;

/// The writing end of a connection. Clones share it: one is written to, the other sends what was.
pub(crate) struct CoalescingWriter<W>(Arc<Mutex<Gathering<W>>>);

struct Gathering<W> {
    to: W,
    bytes: Vec<u8>,
    /// So many of them are sent.
    sent: usize,
}

impl<W> Clone for CoalescingWriter<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: AsyncWrite + Unpin> CoalescingWriter<W> {
    pub(crate) fn new(to: W) -> Self {
        Self(Arc::new(Mutex::new(Gathering { to, bytes: Vec::new(), sent: 0 })))
    }

    /// Sends what was gathered; while that isn't all taken, the task is woken to go on.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().poll_send(cx)
    }

    fn lock(&self) -> MutexGuard<'_, Gathering<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: AsyncWrite + Unpin> Gathering<W> {
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            match ready!(Pin::new(&mut self.to).poll_write(cx, &self.bytes[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => self.sent += more,
            }
        }
        self.bytes.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Whether there is room; waits for it if there isn't.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
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
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut gathering = self.lock();
        ready!(gathering.poll_room(cx))?;
        let before = gathering.bytes.len();
        for piece in pieces {
            let room = BYTES_MAX - gathering.bytes.len();
            gathering.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        Poll::Ready(Ok(gathering.bytes.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Sent when the turn has ended.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.lock();
        ready!(gathering.poll_send(cx))?;
        Pin::new(&mut gathering.to).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn nothing_goes_out_before_it_is_sent_and_then_all_of_it_in_order() {
        let (mut reading, writing) = tokio::io::duplex(BYTES_MAX);
        let mut gathered = CoalescingWriter::new(writing);
        for piece in ["one ", "two ", "three"] {
            gathered.write_all(piece.as_bytes()).await.unwrap();
            gathered.flush().await.unwrap();
        }
        let mut record_cache_status = vec![0; 13];
        assert!(futures::poll!(std::pin::pin!(reading.read_exact(&mut record_cache_status))).is_pending());
        poll_fn(|cx| gathered.poll_send(cx)).await.unwrap();
        reading.read_exact(&mut record_cache_status).await.unwrap();
        assert_eq!(record_cache_status, b"one two three");
    }

    #[tokio::test]
    async fn who_does_not_read_is_kept_waiting_and_loses_nothing() {
        let (mut reading, writing) = tokio::io::duplex(100);
        let mut gathered = CoalescingWriter::new(writing);
        let all: Vec<u8> = (0..3 * BYTES_MAX).map(|at| at.to_le_bytes()[0]).collect();
        let mut write = std::pin::pin!(async {
            gathered.write_all(&all).await.unwrap();
            gathered.shutdown().await.unwrap();
        });
        assert!(futures::poll!(write.as_mut()).is_pending(), "there is room for a third");
        let mut record_cache_status = Vec::new();
        let (_, read) = tokio::join!(write, reading.read_to_end(&mut record_cache_status));
        assert_eq!(read.unwrap(), all.len());
        assert_eq!(record_cache_status, all);
    }
}
