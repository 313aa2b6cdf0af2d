//! A cable to a server that can be cut and mended.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

/// Connections to its address lead to another, as long as it is whole.
pub(crate) struct Cable {
    pub(crate) address: SocketAddr,
    far_end: String,
    strands: Arc<Mutex<JoinSet<()>>>,
    accepting: Mutex<AbortHandle>,
}

impl Cable {
    pub(crate) async fn to(far_end: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let strands = Arc::new(Mutex::new(JoinSet::new()));
        let accepting = Mutex::new(accept(listener, far_end.clone(), Arc::clone(&strands)).abort_handle());
        Self { address, far_end, strands, accepting }
    }

    /// Ends every connection and takes no new one.
    pub(crate) fn cut(&self) {
        self.accepting.lock().unwrap().abort();
        *self.strands.lock().unwrap() = JoinSet::new();
    }

    /// Takes connections again.
    pub(crate) async fn mend(&self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        let accepting = accept(listener, self.far_end.clone(), Arc::clone(&self.strands));
        *self.accepting.lock().unwrap() = accepting.abort_handle();
    }
}

fn accept(listener: TcpListener, far_end: String, strands: Arc<Mutex<JoinSet<()>>>) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let far_end = far_end.clone();
            strands.lock().unwrap().spawn(async move {
                let Ok(mut far) = TcpStream::connect(far_end).await else { return };
                let _either_end_hung_up = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    })
}
