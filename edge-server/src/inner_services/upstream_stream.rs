//! A connection to an inner service that knows whether the response to its last request has begun.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Whether something was read since the last write.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer(Arc<AtomicBool>);

impl Answer {
    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn set(&self, has_begun: bool) {
        self.0.store(has_begun, Ordering::SeqCst);
    }
}

/// A connection to an inner service.
pub(super) struct UpstreamStream {
    stream: TcpStream,
    answer: Answer,
}

impl UpstreamStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, answer: Answer::default() }
    }
}

impl Connection for UpstreamStream {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.answer.clone())
    }
}

impl AsyncRead for UpstreamStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > filled {
            self.answer.set(true);
        }
        polled
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.answer.set(false);
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.answer.set(false);
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }
}
