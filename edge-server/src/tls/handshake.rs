//! The handshake: reads the client's hello, finds the certificate of its name, and lets rustls do the rest.

use std::io::{self, Read};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{Acceptor, ClientHello};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::StartHandshake;
use tokio_rustls::server::TlsStream;

use super::alpn_challenge;
use super::served_certificate::ServedCertificate;
use super::server_name::certificate_name;
use super::termination::TlsTermination;
use crate::state::EdgeState;

/// The longest hello that is read. Those of browsers have about 2 KiB, with a post-quantum key share. rustls alone would keep
/// 64 KiB of one for every silent client.
const MAX_HELLO_BYTES: usize = 16 * 1024;

/// The description of a fatal alert (RFC 8446, 6.2) that ends a handshake before rustls has taken it over. rustls would answer
/// an unknown name with `access_denied`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Alert {
    /// The hello is too long.
    DecodeError = 50,
    /// The certificate can't be looked up.
    InternalError = 80,
    /// There is no certificate of this name.
    UnrecognizedName = 112,
}

impl Alert {
    /// Returns the record: the content type alert, the version that all clients accept, the length, and the level fatal.
    fn record(self) -> [u8; 7] {
        [21, 3, 3, 0, 2, 2, self as u8]
    }

    /// Sends the alert and closes the connection.
    async fn send(self, stream: &mut (impl AsyncWrite + Unpin)) {
        close_with(stream, &self.record()).await;
    }
}

/// Sends the record of an alert and closes the connection.
async fn close_with(stream: &mut (impl AsyncWrite + Unpin), alert: &[u8]) {
    if stream.write_all(alert).await.is_ok() {
        let _already_closed = stream.shutdown().await;
    }
}

/// A TLS connection and the certificate that its client accepted.
pub(crate) struct Accepted {
    pub(crate) stream: Box<TlsStream<TcpStream>>,
    pub(crate) certificate: Arc<ServedCertificate>,
}

/// What a client asks for.
struct Asked {
    /// In lower case.
    server_name: Option<String>,
    is_challenge: bool,
}

impl Asked {
    fn new(hello: &ClientHello<'_>) -> Self {
        let mut protocols = hello.alpn().into_iter().flatten();
        let is_challenge = protocols.next() == Some(alpn_challenge::PROTOCOL) && protocols.next().is_none();
        Self { server_name: hello.server_name().map(str::to_ascii_lowercase), is_challenge }
    }
}

/// Performs a handshake within the timeout. Returns `None` if it failed, or if it only answered a challenge; then the client
/// got an alert and the connection is closed.
pub(crate) async fn accept(tls: &TlsTermination, state: &EdgeState, stream: TcpStream) -> Option<Accepted> {
    let handshake = async {
        let start = read_hello(stream).await.map_err(log_failure).ok()?;
        // Only from here on: a client that sends its hello slowly keeps no other one waiting.
        let slot = tls.handshakes.acquire().await;
        slot.run(answer(tls, state, start)).await.flatten()
    };
    tokio::time::timeout(tls.handshake_timeout, handshake).await.ok().flatten()
}

/// What has been received of a socket, up to the limit.
struct Received<'a> {
    stream: &'a TcpStream,
    left: usize,
}

impl Read for Received<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.left);
        let read = self.stream.try_read(&mut buffer[..length])?;
        self.left -= read;
        Ok(read)
    }
}

/// Reads a whole hello. After a wrong one or a longer one the client gets an alert and the connection is to be closed.
async fn read_hello(mut stream: TcpStream) -> io::Result<StartHandshake<TcpStream>> {
    let (mut acceptor, mut left) = (Acceptor::default(), MAX_HELLO_BYTES);
    loop {
        stream.readable().await?;
        let mut received = Received { stream: &stream, left };
        match acceptor.read_tls(&mut received) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => left = received.left,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(StartHandshake::from_parts(accepted, stream)),
            Ok(None) if left == 0 => {
                Alert::DecodeError.send(&mut stream).await;
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the hello is too long"));
            }
            Ok(None) => {}
            Err((error, mut alert)) => {
                let mut record = Vec::new();
                alert.write_all(&mut record)?;
                close_with(&mut stream, &record).await;
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
    }
}

/// Answers a hello, and completes its handshake if there is a certificate of its name.
async fn answer(
    tls: &TlsTermination,
    state: &EdgeState,
    start: StartHandshake<TcpStream>,
) -> Option<Accepted> {
    let asked = Asked::new(&start.client_hello());
    if asked.is_challenge {
        answer_challenge(tls, state, start, asked.server_name.as_deref()).await;
        return None;
    }
    let found = match certificate_name(&state.addresses, asked.server_name.as_deref()) {
        Some(name) => tls.find_certificate(&name).await,
        None => Ok(None),
    };
    match found {
        Ok(Some(certificate)) => {
            let stream = finish(start, Arc::clone(&certificate.config)).await?;
            Some(Accepted { stream, certificate })
        }
        Ok(None) => reject(start, Alert::UnrecognizedName).await,
        Err(error) => {
            tracing::debug!(%error, "a certificate can't be looked up");
            reject(start, Alert::InternalError).await
        }
    }
}

/// Answers a TLS-ALPN-01 challenge and closes the connection.
async fn answer_challenge(
    tls: &TlsTermination,
    state: &EdgeState,
    start: StartHandshake<TcpStream>,
    host: Option<&str>,
) {
    let Some(host) = host.filter(|host| certificate_name(&state.addresses, Some(host)).is_some()) else {
        return drop(reject(start, Alert::UnrecognizedName).await);
    };
    let config = match state.challenges.find_alpn(host).await {
        Ok(Some(key_authorization)) => alpn_challenge::server_config(&tls.template, host, &key_authorization),
        Ok(None) => return drop(reject(start, Alert::UnrecognizedName).await),
        Err(error) => Err(error.into()),
    };
    match config {
        Ok(config) => {
            if let Some(mut stream) = finish(start, config).await {
                let _already_closed = stream.shutdown().await;
            }
        }
        Err(error) => {
            tracing::warn!(host, %error, "a challenge of a certificate authority can't be answered");
            drop(reject(start, Alert::InternalError).await);
        }
    }
}

async fn finish(
    start: StartHandshake<TcpStream>,
    config: Arc<ServerConfig>,
) -> Option<Box<TlsStream<TcpStream>>> {
    start.into_stream(config).await.map(Box::new).map_err(log_failure).ok()
}

async fn reject(mut start: StartHandshake<TcpStream>, alert: Alert) -> Option<Accepted> {
    alert.send(&mut start.io).await;
    None
}

fn log_failure(error: std::io::Error) {
    tracing::debug!(%error, "a TLS handshake failed");
}
