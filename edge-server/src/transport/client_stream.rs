//! The stream of a client: TCP, or TLS over TCP. All code behind it is compiled for each.

use tokio::io::{self, AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_rustls::server::TlsStream;

/// A stream that can be read and written independently.
pub(super) trait ClientStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    type Reader: AsyncRead + Send + Unpin + 'static;
    type Writer: AsyncWrite + Send + Unpin + 'static;

    fn into_halves(self) -> (Self::Reader, Self::Writer);
}

impl ClientStream for TcpStream {
    type Reader = OwnedReadHalf;
    type Writer = OwnedWriteHalf;

    fn into_halves(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        self.into_split()
    }
}

/// Boxed, because each function that the stream is passed to would have memory of its own for it, more than a kilobyte.
impl ClientStream for Box<TlsStream<TcpStream>> {
    type Reader = io::ReadHalf<Self>;
    type Writer = io::WriteHalf<Self>;

    fn into_halves(self) -> (Self::Reader, Self::Writer) {
        io::split(self)
    }
}
