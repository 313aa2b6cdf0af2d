//! A proxy in front of ClickHouse that counts statements.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandbox::test::TestClickHouse;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Counts the requests that pass through it. Each is one statement.
pub(super) struct StatementCounter {
    pub(super) url: String,
    count: Arc<AtomicUsize>,
}

impl StatementCounter {
    /// Starts a proxy of this ClickHouse.
    pub(super) async fn before(clickhouse: &TestClickHouse) -> Self {
        let server: SocketAddr =
            clickhouse.url.strip_prefix("http://").unwrap().trim_end_matches('/').parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, server, Arc::clone(&counted)));
            }
        });
        Self { url, count }
    }

    /// Returns the number of statements since the last call.
    pub(super) fn take(&self) -> usize {
        self.count.swap(0, Ordering::SeqCst)
    }
}

/// Copies both directions of a connection, and counts the heads of requests.
async fn pass_on(client: TcpStream, server: SocketAddr, count: Arc<AtomicUsize>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let responses = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let mut buffer = vec![0; 64 << 10];
    let mut tail = Vec::new();
    while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
        // A head may be cut into two reads.
        tail.extend_from_slice(&buffer[..read]);
        let heads = tail.windows(HEAD.len()).filter(|window| *window == HEAD).count();
        count.fetch_add(heads, Ordering::SeqCst);
        tail.drain(..tail.len().saturating_sub(HEAD.len() - 1));
        if to_server.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    drop(to_server);
    // The rest of a response to a client that is gone does not matter.
    let _ended = responses.await;
}

/// The end of the first line of a request. No statement contains it.
const HEAD: &[u8] = b" HTTP/1.1\r\n";
