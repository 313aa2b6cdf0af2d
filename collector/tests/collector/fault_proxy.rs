//! A TCP connection to ClickHouse that can be shut, or lets requests through and keeps the answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

const OPEN: u8 = 0;
const SHUT: u8 = 1;
const DEAF: u8 = 2;

#[derive(Clone)]
pub(crate) struct FaultProxy {
    pub(crate) url: String,
    state: Arc<AtomicU8>,
    cut: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl FaultProxy {
    /// A proxy, open, in front of `url`.
    pub(crate) async fn before(url: &str) -> Self {
        let target = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let (state, cut) = (Arc::<AtomicU8>::default(), Arc::<AtomicUsize>::default());
        let accept = {
            let (state, cut) = (Arc::clone(&state), Arc::clone(&cut));
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let (state, cut, target) = (Arc::clone(&state), Arc::clone(&cut), target.clone());
                    tokio::spawn(async move {
                        if let Ok(server) = TcpStream::connect(&target).await {
                            // How the connection ends is what the test is about.
                            let _ended = pass(&state, client, server).await;
                        }
                        cut.fetch_add(1, Ordering::SeqCst);
                    });
                }
            }
        };
        let accepting = tokio::spawn(accept).abort_handle();
        Self { url: format!("http://{address}"), state, cut, accepting }
    }

    /// Connections are cut, and further ones refused, for good.
    pub(crate) fn refuse(&self) {
        self.shut();
        self.accepting.abort();
    }

    pub(crate) fn open(&self) {
        self.state.store(OPEN, Ordering::SeqCst);
    }

    /// Nothing goes through; whoever tries is cut off.
    pub(crate) fn shut(&self) {
        self.state.store(SHUT, Ordering::SeqCst);
    }

    /// Inserts reach ClickHouse and are stored, and nobody hears of it.
    pub(crate) fn deafen(&self) {
        self.state.store(DEAF, Ordering::SeqCst);
    }

    /// Connections that have ended so far.
    pub(crate) fn cut(&self) -> usize {
        self.cut.load(Ordering::SeqCst)
    }
}

async fn pass(state: &AtomicU8, mut client: TcpStream, mut server: TcpStream) -> std::io::Result<()> {
    let (mut asked, mut answer) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut inserting = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let bytes = &asked[..read?];
                if bytes.is_empty() || state.load(Ordering::SeqCst) == SHUT {
                    return Ok(());
                }
                inserting |= bytes.windows(12).any(|window| window == b"query=INSERT");
                server.write_all(bytes).await?;
            }
            read = server.read(&mut answer) => {
                let bytes = &answer[..read?];
                // ClickHouse answers an insert once it is stored.
                if bytes.is_empty() || (inserting && state.load(Ordering::SeqCst) == DEAF) {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}
