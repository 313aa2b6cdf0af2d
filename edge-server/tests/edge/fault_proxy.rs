//! A cable to a server that can be cut and mended, or hold what is sent, the end of a connection as well.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

/// Connections to its address lead to another, as long as it is whole.
pub(crate) struct FaultProxy {
    pub(crate) address: SocketAddr,
    upstream: String,
    flows: watch::Sender<Flow>,
    connections: Arc<Connections>,
    accepting: Mutex<AbortHandle>,
}

/// The connections, and how many there have been.
#[derive(Default)]
struct Connections {
    running: Mutex<JoinSet<()>>,
    accepted: AtomicUsize,
}

/// What it lets through.
#[derive(Clone, Copy, Default)]
struct Flow {
    is_stalled: bool,
    /// Connections before this one are dead.
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

    /// Ends every connection and takes no new one.
    pub(crate) fn cut(&self) {
        self.accepting.lock().unwrap().abort();
        *self.connections.running.lock().unwrap() = JoinSet::new();
    }

    /// Takes connections again.
    pub(crate) async fn restore(&self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        let connections = Arc::clone(&self.connections);
        let accepting = accept(listener, self.upstream.clone(), self.flows.subscribe(), connections);
        *self.accepting.lock().unwrap() = accepting.abort_handle();
    }

    /// Keeps connections open and lets nothing through them, or all again.
    pub(crate) fn stall(&self) {
        self.flows.send_modify(|flow| flow.is_stalled = true);
    }

    /// Passes bytes again after [`Self::stall`].
    pub(crate) fn resume(&self) {
        self.flows.send_modify(|flow| flow.is_stalled = false);
    }

    /// Lets nothing more through the connections there are, and keeps them open; new ones are as good as ever.
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

/// Until either end hangs up.
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
    // That it has ended is not told either.
    let _is_passed = flows.wait_for(|flow| flow.passes(number)).await.is_ok();
}
