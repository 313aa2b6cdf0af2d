//! Ports on loopback. A free one is asked of the kernel and let go again, so that the child can take it; in
//! between another program may. Then the start is tried again with the next.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context as _, Result, bail};

use crate::child::ChildExit;
use crate::{dirs, secret};

const ATTEMPTS: usize = 5;

/// Loopback with that port.
pub(crate) fn on_loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn free() -> io::Result<u16> {
    Ok(TcpListener::bind(on_loopback(0))?.local_addr()?.port())
}

/// Below the ports that the kernel gives to outgoing connections (32768 and up, unless somebody changed it):
/// one of those may be taken by a connection at any moment between its choice and its use.
const RESERVABLE: std::ops::Range<u16> = 20_000..32_000;

/// A port that is kept from every other caller of ours on this machine until it is dropped. Nobody listens on
/// it yet, and whoever is to may come and go.
#[derive(Debug)]
pub struct Reserved {
    /// The port.
    pub port: u16,
    _lock: File,
}

/// Reserves a free port on loopback.
///
/// # Errors
/// There is none, or the folder of locks can't be made.
pub fn reserve() -> Result<Reserved> {
    let folder = dirs::temporary_base().join("ports");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    for _ in 0..1_000 {
        let span = RESERVABLE.end - RESERVABLE.start;
        let port = RESERVABLE.start + u16::from_be_bytes(secret::random()) % span;
        let lock = File::create(folder.join(port.to_string()))?;
        if lock.try_lock().is_ok() && TcpListener::bind(on_loopback(port)).is_ok() {
            return Ok(Reserved { port, _lock: lock });
        }
    }
    bail!("no free port from {} to {}", RESERVABLE.start, RESERVABLE.end)
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
                if attempt < ATTEMPTS
                    && error.downcast_ref::<ChildExit>().is_some_and(ChildExit::port_in_use) =>
            {
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_reserved_port_is_nobody_elses_until_it_is_given_back() {
        let reserved: Vec<Reserved> = (0..200).map(|_| reserve().unwrap()).collect();
        let ports: BTreeSet<u16> = reserved.iter().map(|one| one.port).collect();
        assert_eq!(ports.len(), 200);
        assert!(
            ports.iter().all(|port| TcpListener::bind(on_loopback(*port)).is_ok()),
            "it can be listened on"
        );
    }
}
