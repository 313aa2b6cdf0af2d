//! Alerts that end a handshake before rustls has taken it over. rustls would answer an unknown name with `access_denied`.

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The description of a fatal alert (RFC 8446, 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Alert {
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
    pub(super) async fn send(self, stream: &mut (impl AsyncWrite + Unpin)) {
        if stream.write_all(&self.record()).await.is_ok() {
            let _already_closed = stream.shutdown().await;
        }
    }
}
