//! A TCP proxy to a server that can be cut and restored, or stalled. A stall holds back the end of a connection too.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

/// A TCP proxy that forwards connections to `upstream` and can inject faults.
pub(crate) struct FaultProxy {
    pub(crate) address: SocketAddr,
    upstream: String,
    flows: watch::Sender<Flow>,
    connections: Arc<Connections>,
    accepting: Mutex<AbortHandle>,
}

/// The open connections, and the number accepted so far.
#[derive(Default)]
struct Connections {
    running: Mutex<JoinSet<()>>,
    accepted: AtomicUsize,
}

/// Which connections pass bytes.
#[derive(Clone, Copy, Default)]
struct Flow {
    is_stalled: bool,
    /// Connections with a lower number are stalled forever.
    first_alive: usize,
}

impl Flow {
    fn passes(self, number: usize) -> bool {
        !self.is_stalled && number >= self.first_alive
    }
}

impl FaultProxy {
    pub(crate) async fn to(upstream: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::<Connections>::default();
        let flows = watch::Sender::new(Flow::default());
        let accepting = accept(listener, upstream.clone(), flows.subscribe(), Arc::clone(&connections));
        Self { address, upstream, flows, connections, accepting: Mutex::new(accepting.abort_handle()) }
    }

    /// Closes every connection and accepts no new ones.
    pub(crate) fn cut(&self) {
        self.accepting.lock().unwrap().abort();
        *self.connections.running.lock().unwrap() = JoinSet::new();
    }

    /// Accepts connections again after [`Self::cut`].
    pub(crate) async fn restore(&self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        let connections = Arc::clone(&self.connections);
        let accepting = accept(listener, self.upstream.clone(), self.flows.subscribe(), connections);
        *self.accepting.lock().unwrap() = accepting.abort_handle();
    }

    /// Keeps connections open but passes no bytes.
    pub(crate) fn stall(&self) {
        self.flows.send_modify(|flow| flow.is_stalled = true);
    }

    /// Passes bytes again after [`Self::stall`].
    pub(crate) fn resume(&self) {
        self.flows.send_modify(|flow| flow.is_stalled = false);
    }

    /// Stalls the open connections forever without closing them. New connections work.
    pub(crate) fn stall_open_connections(&self) {
        let accepted = self.connections.accepted.load(Ordering::SeqCst);
        self.flows.send_modify(|flow| flow.first_alive = accepted);
    }
}

fn accept(
    listener: TcpListener,
    upstream: String,
    flows: watch::Receiver<Flow>,
    connections: Arc<Connections>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let (upstream, flows) = (upstream.clone(), flows.clone());
            let number = connections.accepted.fetch_add(1, Ordering::SeqCst);
            connections.running.lock().unwrap().spawn(async move {
                let Ok(far) = TcpStream::connect(upstream).await else { return };
                let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
                let flows = (flows, number);
                tokio::join!(pass(from_near, to_far, flows.clone()), pass(from_far, to_near, flows));
            });
        }
    })
}

/// Copies bytes in one direction until either end closes.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    (mut flows, number): (watch::Receiver<Flow>, usize),
) {
    let mut piece = vec![0; 1 << 16];
    while let Ok(1..) = from.read(&mut piece).await.inspect(|length| piece.truncate(*length)) {
        if flows.wait_for(|flow| flow.passes(number)).await.is_err() || to.write_all(&piece).await.is_err() {
            return;
        }
        piece.resize(1 << 16, 0);
    }
    // A stall also holds back the end of the connection.
    let _is_passed = flows.wait_for(|flow| flow.passes(number)).await.is_ok();
}
