//! A TCP proxy with connections that can die without a reset, as when a firewall forgets them or a host loses power.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use url::Url;

use super::backends::must;

/// A proxy to one server. While it swallows, it accepts connections and bytes and passes nothing on, in neither direction.
/// A connection that was open meanwhile stays silent for good; only connections opened afterwards work.
#[derive(Debug)]
pub struct SilentProxy {
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Debug, Default)]
struct Shared {
    /// Connections with a lower number are dead. The maximum while the proxy swallows.
    first_alive: AtomicUsize,
    accepted: AtomicUsize,
    /// Milliseconds that bytes are late, in each direction.
    delay_ms: AtomicU64,
}

impl SilentProxy {
    /// Starts a proxy to the server of `url`, and returns it with the URL that leads through it.
    pub async fn start(url: &str) -> (Self, String) {
        let mut url = must(Url::parse(url).context("the server's URL"));
        let server = must(
            url.host_str()
                .zip(url.port())
                .map(|(host, port)| format!("{host}:{port}"))
                .context("the URL has no port"),
        );
        let listener = must(TcpListener::bind("127.0.0.1:0").await.map_err(Into::into));
        let address = must(listener.local_addr().map_err(Into::into));
        let shared = Arc::<Shared>::default();
        let accepting = tokio::spawn(accept(listener, server, Arc::clone(&shared))).abort_handle();
        must(
            url.set_ip_host(address.ip())
                .and_then(|()| url.set_port(Some(address.port())))
                .map_err(|()| anyhow::anyhow!("the URL can't be changed")),
        );
        (Self { shared, accepting }, url.into())
    }

    /// Kills every connection without a reset, also those that are opened until [`Self::pass`].
    pub fn swallow(&self) {
        self.shared.first_alive.store(usize::MAX, Ordering::SeqCst);
    }

    /// Delays bytes in each direction, as on an overloaded machine; zero lifts the delay.
    pub fn delay(&self, delay: Duration) {
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.shared.delay_ms.store(delay_ms, Ordering::SeqCst);
    }

    /// Lets connections pass that are opened from now on.
    pub fn pass(&self) {
        self.shared.first_alive.store(self.shared.accepted.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

impl Drop for SilentProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: String, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
        let (shared, server) = (Arc::clone(&shared), server.clone());
        tokio::spawn(async move {
            let Ok(upstream) = TcpStream::connect(server).await else { return };
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), upstream.into_split());
            tokio::join!(
                pass(from_client, to_server, &shared, number),
                pass(from_server, to_client, &shared, number),
            );
        });
    }
}

/// Copies bytes in one direction until either end closes. Once the connection is dead, bytes and the end are swallowed.
#[expect(clippy::disallowed_methods, reason = "the delay of the proxy")]
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    shared: &Shared,
    number: usize,
) {
    let mut buffer = vec![0; 1 << 16];
    let mut is_dead = false;
    loop {
        let length = from.read(&mut buffer).await.unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(shared.delay_ms.load(Ordering::SeqCst))).await;
        is_dead |= number < shared.first_alive.load(Ordering::SeqCst);
        if is_dead && length == 0 {
            // Holds the other side open: it gets no reset.
            return std::future::pending().await;
        }
        if !is_dead && (length == 0 || to.write_all(&buffer[..length]).await.is_err()) {
            return;
        }
    }
}
