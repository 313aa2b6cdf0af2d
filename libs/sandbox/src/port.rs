//! Ports on loopback. A free one is asked of the kernel and let go again, so that the child can take it; in
//! between another program may. Then the start is tried again with the next.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::Result;

use crate::child::Ended;

const ATTEMPTS: usize = 5;

/// Loopback with that port.
pub(crate) fn on_loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A port that is free at this moment.
///
/// # Errors
/// The machine has none.
pub fn free() -> io::Result<u16> {
    Ok(TcpListener::bind(on_loopback(0))?.local_addr()?.port())
}

/// Starts something on the wanted port, or, where that is 0, on a free one.
pub(crate) async fn start_on<T>(wanted: u16, start: impl AsyncFn(u16) -> Result<T>) -> Result<T> {
    if wanted != 0 {
        return start(wanted).await;
    }
    let mut attempt = 1;
    loop {
        match start(free()?).await {
            Err(error)
                if attempt < ATTEMPTS && error.downcast_ref::<Ended>().is_some_and(Ended::port_was_taken) =>
            {
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}
