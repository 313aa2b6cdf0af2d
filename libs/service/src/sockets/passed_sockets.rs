//! Sockets that a supervisor such as systemd opened before it started this process (`sd_listen_fds(3)`). It keeps them while
//! the process restarts, so that connections wait in their queues and none is refused.

use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, bail};
use listenfd::ListenFd;

use crate::config::Listen;

/// The names of sockets, as in `LISTEN_FDNAMES`; also their order if they have other names.
const MAIN: &str = "main";
const HTTPS: &str = "https";
const OPS: &str = "ops";

/// What [`adopt_passed_sockets`] found, until the sockets are assigned.
static ADOPTED: Mutex<Option<Adopted>> = Mutex::new(None);

/// The sockets in the order in which they were passed.
#[derive(Debug, Default)]
pub(super) struct Adopted {
    sockets: Vec<TcpListener>,
    names: String,
    warning: Option<&'static str>,
}

/// Takes the sockets that were passed to this process, for [`crate::Listeners`]. Call it before the process has threads: it
/// removes `LISTEN_PID` and `LISTEN_FDS`, so that no child process takes the sockets for its own. They are closed on exec.
///
/// # Errors
/// What was passed is no TCP socket.
pub fn adopt_passed_sockets() -> anyhow::Result<()> {
    let adopted = Adopted::from_environment()?;
    *ADOPTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(adopted);
    Ok(())
}

/// Returns the adopted sockets. A second call finds none.
pub(super) fn adopted() -> Adopted {
    ADOPTED.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
}

impl Adopted {
    /// Takes the sockets if `LISTEN_PID` is this process: another value means that they are for another process, whose
    /// environment this one has inherited.
    #[expect(clippy::disallowed_methods, reason = "systemd's interface, and no setting")]
    fn from_environment() -> anyhow::Result<Self> {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let (pid, names) = (variable("LISTEN_PID"), variable("LISTEN_FDNAMES"));
        let are_set = !variable("LISTEN_FDS").is_empty();
        // Removes the variables in any case.
        let mut passed = ListenFd::from_env();
        let mut adopted = Self { names, ..Self::default() };
        if pid.parse() != Ok(std::process::id()) {
            adopted.warning =
                are_set.then_some("ignored sockets (LISTEN_FDS): LISTEN_PID is not this process");
            return Ok(adopted);
        }
        for index in 0..passed.len() {
            let socket = passed.take_tcp_listener(index).context("a socket in LISTEN_FDS can't be used")?;
            adopted.sockets.push(socket.context("a socket in LISTEN_FDS was taken twice")?);
        }
        Ok(adopted)
    }
}

/// The sockets that were passed to this process.
#[derive(Debug, Default)]
pub(super) struct PassedSockets {
    pub(super) main: Option<TcpListener>,
    pub(super) https: Option<TcpListener>,
    pub(super) ops: Option<TcpListener>,
}

impl PassedSockets {
    /// Assigns the sockets by their names, or else by their order.
    pub(super) fn assign(adopted: Adopted, listen: &Listen) -> anyhow::Result<Self> {
        let Adopted { sockets, names, warning } = adopted;
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
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
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};

    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    fn assign(count: usize, names: &str, https: bool) -> Result<[Option<u16>; 3], String> {
        let sockets: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        let https = https.then(|| ([127, 0, 0, 1], 443).into());
        let listen = Listen { https, ..Listen::default() };
        let adopted = Adopted { sockets, names: names.to_owned(), warning: None };
        let assigned = PassedSockets::assign(adopted, &listen).map_err(|error| error.to_string())?;
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

    /// Runs `child` in a process of its own that two sockets are passed to. Returns what it reports.
    fn child(listen_pid: &str) -> String {
        let sockets = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let [one, other] = sockets.map(OwnedFd::from);
        // The shell moves them to 3 and 4, and its process becomes the test's.
        let script = format!(
            "exec 3<&0 4>&1 1>&2; {listen_pid} export LISTEN_FDS=2 LISTEN_FDNAMES=ops:main; exec \"$0\" \"$@\""
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        command.arg("sockets::passed_sockets::tests::reports_the_sockets_of_its_process");
        command.stdin(one).stdout(other).stderr(Stdio::piped()).env_remove("LISTEN_PID");
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let output = String::from_utf8(output.stderr).unwrap();
        let report =
            output.lines().find_map(|line| line.split_once("REPORT ")).map(|(_, report)| report.to_owned());
        report.unwrap_or(output)
    }

    #[test]
    #[ignore = "run in a process of its own by another test"]
    #[expect(clippy::disallowed_methods, reason = "shows what a child process would see")]
    fn reports_the_sockets_of_its_process() {
        let adopted = Adopted::from_environment().unwrap();
        let closed_on_exec =
            adopted.sockets.iter().all(|socket| fcntl_getfd(socket).unwrap().contains(FdFlags::CLOEXEC));
        let removed = ["LISTEN_PID", "LISTEN_FDS"].iter().all(|name| std::env::var(name).is_err());
        let (count, warns) = (adopted.sockets.len(), adopted.warning.is_some());
        eprintln!("REPORT sockets={count} closed_on_exec={closed_on_exec} removed={removed} warns={warns}");
    }

    #[test]
    fn sockets_are_taken_only_by_the_process_that_they_are_for() {
        let report =
            |sockets, warns| format!("sockets={sockets} closed_on_exec=true removed=true warns={warns}");
        assert_eq!(child("export LISTEN_PID=$$;"), report(2, false));
        for other in ["export LISTEN_PID=1;", "export LISTEN_PID=;", "unset LISTEN_PID;"] {
            assert_eq!(child(other), report(0, true), "{other}");
        }
    }
}
