//! Sockets that a supervisor such as systemd opened before it started this process (`sd_listen_fds(3)`). It keeps them while
//! the process restarts, so that connections wait in their queues and none is refused.

use std::net::TcpListener;

use anyhow::{Context as _, bail};
use listenfd::ListenFd;

use crate::config::Listen;

/// The names of sockets, as in `LISTEN_FDNAMES`; also their order if they have other names.
const MAIN: &str = "main";
const HTTPS: &str = "https";
const OPS: &str = "ops";

/// The sockets that were passed to this process.
#[derive(Debug, Default)]
pub(crate) struct PassedSockets {
    pub(crate) main: Option<TcpListener>,
    pub(crate) https: Option<TcpListener>,
    pub(crate) ops: Option<TcpListener>,
}

impl PassedSockets {
    /// Takes the sockets, if `LISTEN_PID` is this process. A second call finds none, and a child process neither: the
    /// variables are removed, and the sockets are closed on exec.
    pub(crate) fn take(listen: &Listen) -> anyhow::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "systemd's interface, and no setting")]
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..passed.len() {
            let socket = passed.take_tcp_listener(index).context("a socket in LISTEN_FDS can't be used")?;
            sockets.push(socket.context("a socket in LISTEN_FDS was taken twice")?);
        }
        Self::assign(sockets, &names, listen)
    }

    fn assign(sockets: Vec<TcpListener>, names: &str, listen: &Listen) -> anyhow::Result<Self> {
        let mut assigned = Self::default();
        if sockets.is_empty() {
            return Ok(assigned);
        }
        let order: &[&str] = if listen.https.is_some() { &[MAIN, HTTPS, OPS] } else { &[MAIN, OPS] };
        let given: Vec<&str> = names.split(':').collect();
        let is_named =
            given.len() == sockets.len() && given.iter().all(|name| [MAIN, HTTPS, OPS].contains(name));
        let names = if is_named { &given[..] } else { order };
        if sockets.len() > names.len() {
            bail!(
                "{} sockets were passed (LISTEN_FDS), but only {} are used: {}",
                sockets.len(),
                names.len(),
                names.join(", ")
            );
        }
        for (socket, name) in sockets.into_iter().zip(names) {
            socket.set_nonblocking(true)?;
            let slot = match *name {
                MAIN => &mut assigned.main,
                HTTPS => &mut assigned.https,
                _ => &mut assigned.ops,
            };
            if slot.replace(socket).is_some() {
                bail!("two sockets named `{name}` were passed (LISTEN_FDNAMES), and one is used");
            }
        }
        if assigned.https.is_some() && listen.https.is_none() {
            bail!(
                "a socket `https` was passed (LISTEN_FDNAMES), but listen.https is empty: set it to the socket's address"
            );
        }
        if assigned.main.is_some() && assigned.https.is_none() && listen.https.is_some() {
            bail!("a socket `main` was passed (LISTEN_FDS), but none for listen.https: pass both or none");
        }
        Ok(assigned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(count: usize, names: &str, https: bool) -> Result<[Option<u16>; 3], String> {
        let sockets: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        let https = https.then(|| ([127, 0, 0, 1], 443).into());
        let listen = Listen { https, ..Listen::default() };
        let assigned = PassedSockets::assign(sockets, names, &listen).map_err(|error| error.to_string())?;
        let at = |socket: Option<TcpListener>| {
            let port = socket?.local_addr().unwrap().port();
            ports.iter().position(|other| *other == port).map(|at| u16::try_from(at).unwrap())
        };
        Ok([at(assigned.main), at(assigned.https), at(assigned.ops)])
    }

    #[test]
    fn sockets_are_assigned_by_name_or_else_by_order() {
        assert_eq!(assign(0, "", false).unwrap(), [None; 3]);
        assert_eq!(assign(1, "", false).unwrap(), [Some(0), None, None]);
        assert_eq!(assign(1, "webruntime-edge.socket", false).unwrap(), [Some(0), None, None]);
        assert_eq!(assign(2, "edge.socket:edge.socket", true).unwrap(), [Some(0), Some(1), None]);
        assert_eq!(assign(2, "", false).unwrap(), [Some(0), None, Some(1)]);
        assert_eq!(assign(3, "ops:main:https", true).unwrap(), [Some(1), Some(2), Some(0)]);
        assert_eq!(assign(1, "ops", false).unwrap(), [None, None, Some(0)]);
    }

    #[test]
    fn sockets_that_would_not_be_used_are_refused() {
        for (count, names, https, error) in [
            (3, "", false, "3 sockets were passed"),
            (2, "main:main", false, "two sockets named `main`"),
            (2, "main:https", false, "listen.https is empty"),
            (1, "main", true, "none for listen.https"),
        ] {
            let message = assign(count, names, https).unwrap_err();
            assert!(message.contains(error), "{message}");
        }
    }
}
