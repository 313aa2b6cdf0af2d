//! Ports on loopback. The kernel chooses a free port, which is released for the child to bind. If another program binds it
//! in between, the start is retried with another port.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context as _, Result, bail};

use crate::child::ChildExit;
use crate::{dirs, secret};

const ATTEMPTS: usize = 5;

/// Returns the loopback address with that port.
pub(crate) fn on_loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn free() -> io::Result<u16> {
    Ok(TcpListener::bind(on_loopback(0))?.local_addr()?.port())
}

/// Below the ports of outgoing connections (32768 and up by default): a connection may take one of those between its choice
/// and its use.
const RESERVABLE: std::ops::Range<u16> = 20_000..32_000;

/// A port reserved against other callers of [`reserve`] on this machine until it is dropped. Processes may bind and release
/// it meanwhile.
#[derive(Debug)]
pub struct Reserved {
    pub port: u16,
    _lock: File,
}

/// Reserves a free port on loopback.
pub fn reserve() -> Result<Reserved> {
    let folder = dirs::temporary_base().join(dirs::PORTS);
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

/// Runs `start` with the requested port, or with a free one if that is 0.
pub(crate) async fn start_on<T>(requested: u16, start: impl AsyncFn(u16) -> Result<T>) -> Result<T> {
    if requested != 0 {
        return start(requested).await;
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
    fn reserved_ports_are_distinct_and_can_be_bound() {
        let reserved: Vec<Reserved> = (0..200).map(|_| reserve().unwrap()).collect();
        let ports: BTreeSet<u16> = reserved.iter().map(|one| one.port).collect();
        assert_eq!(ports.len(), 200);
        assert!(ports.iter().all(|port| TcpListener::bind(on_loopback(*port)).is_ok()), "they can be bound");
    }
}
