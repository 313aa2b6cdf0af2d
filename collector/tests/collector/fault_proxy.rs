//! A TCP proxy in front of ClickHouse or Postgres that can disconnect clients or drop the responses of inserts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

const FORWARDING: u8 = 0;
const DISCONNECTING: u8 = 1;
const DROPPING_INSERT_RESPONSES: u8 = 2;

#[derive(Clone)]
pub(crate) struct FaultProxy {
    pub(crate) url: String,
    state: Arc<AtomicU8>,
    closed: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl FaultProxy {
    /// Starts a proxy that forwards to `url`.
    pub(crate) async fn in_front_of(url: &str) -> Self {
        let target = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let (state, closed) = (Arc::<AtomicU8>::default(), Arc::<AtomicUsize>::default());
        let accept = {
            let (state, closed) = (Arc::clone(&state), Arc::clone(&closed));
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let (state, closed, target) = (Arc::clone(&state), Arc::clone(&closed), target.clone());
                    tokio::spawn(async move {
                        if let Ok(server) = TcpStream::connect(&target).await {
                            // Broken connections are part of the test.
                            let _ended = forward(&state, client, server).await;
                        }
                        closed.fetch_add(1, Ordering::SeqCst);
                    });
                }
            }
        };
        let accepting = tokio::spawn(accept).abort_handle();
        Self { url: format!("http://{address}"), state, closed, accepting }
    }

    /// Disconnects clients and refuses new connections, permanently.
    pub(crate) fn refuse_connections(&self) {
        self.disconnect();
        self.accepting.abort();
    }

    pub(crate) fn restore(&self) {
        self.state.store(FORWARDING, Ordering::SeqCst);
    }

    /// Closes connections as soon as their client sends something.
    pub(crate) fn disconnect(&self) {
        self.state.store(DISCONNECTING, Ordering::SeqCst);
    }

    /// Forwards inserts to ClickHouse, which stores them, but closes the connection instead of forwarding the response.
    pub(crate) fn drop_insert_responses(&self) {
        self.state.store(DROPPING_INSERT_RESPONSES, Ordering::SeqCst);
    }

    /// The number of connections closed so far.
    pub(crate) fn closed_connections(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }
}

async fn forward(state: &AtomicU8, mut client: TcpStream, mut server: TcpStream) -> std::io::Result<()> {
    let (mut request, mut response) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut inserting = false;
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let bytes = &request[..read?];
                if bytes.is_empty() || state.load(Ordering::SeqCst) == DISCONNECTING {
                    return Ok(());
                }
                inserting |= bytes.windows(12).any(|window| window == b"query=INSERT");
                server.write_all(bytes).await?;
            }
            read = server.read(&mut response) => {
                let bytes = &response[..read?];
                // ClickHouse responds to an insert once it is stored.
                if bytes.is_empty() || (inserting && state.load(Ordering::SeqCst) == DROPPING_INSERT_RESPONSES) {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}
