//! Child processes that can't outlive this process, not even after kill -9: the kernel signals a child when the thread
//! that started it ends. So every child has a thread of its own, which lives as long as the child.
#![expect(unsafe_code, reason = "the code between fork and exec must be declared safe")]

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// Time for a child to exit before it is killed.
const GRACE: Duration = Duration::from_secs(30);
/// The same for a child that is dropped.
const DROP_GRACE: Duration = Duration::from_secs(5);

/// A running child process. Dropping it terminates it and waits for its exit.
#[derive(Debug)]
pub struct Child {
    name: &'static str,
    pid: u32,
    /// The target of signals: the process id may be reused by another process.
    pidfd: OwnedFd,
    exited: watch::Receiver<Option<ExitStatus>>,
    stop_signal: Signal,
    log: PathBuf,
}

impl Child {
    /// Starts the command with its output in `log`. It gets a process group of its own, so that Ctrl-C doesn't reach it.
    /// [`Child::stop`], drop and, if this process dies, the kernel end it with `stop_signal`.
    pub fn spawn(name: &'static str, mut command: Command, stop_signal: Signal, log: &Path) -> Result<Self> {
        let out = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let out = out.with_context(|| format!("opening {}", log.display()))?;
        command.stdin(std::process::Stdio::null()).stdout(out.try_clone()?).stderr(out).process_group(0);
        let parent = getpid();
        // SAFETY: two system calls, which neither allocate nor lock. They run after the change of user, which would
        // clear the parent-death signal.
        unsafe { command.pre_exec(move || die_with(parent, stop_signal)) };

        let (started, start) = mpsc::channel();
        let (exit, exited) = watch::channel(None);
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut child = match spawn_with_pidfd(&mut command) {
                Ok((child, pidfd)) => {
                    let _receiver_dropped = started.send(Ok((child.id(), pidfd)));
                    child
                }
                Err(error) => {
                    let _receiver_dropped = started.send(Err(error));
                    return;
                }
            };
            let _receiver_dropped = exit.send(child.wait().ok());
        })?;
        let (pid, pidfd) =
            start.recv().context("the child's thread exited")?.with_context(|| format!("starting {name}"))?;
        Ok(Self { name, pid, pidfd, exited, stop_signal, log: log.to_owned() })
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until `probe` returns true. Fails as soon as the child exits, or after `limit`.
    pub(crate) async fn wait_until_ready(
        &self,
        limit: Duration,
        probe: impl AsyncFn() -> bool,
    ) -> Result<()> {
        // There is no event for «accepts connections», so this polls. A probe costs a loopback connection.
        let mut ticks = interval(Duration::from_millis(10));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = Instant::now() + limit;
        let mut exited = self.exited.clone();
        loop {
            tokio::select! {
                biased;
                _ = exited.wait_for(Option::is_some) => return Err(self.exit().into()),
                _ = ticks.tick() => {}
            }
            if probe().await {
                return Ok(());
            }
            if Instant::now() > deadline {
                anyhow::bail!(
                    "{} is not ready after {limit:?}; its log ends:\n{}",
                    self.name,
                    tail(&self.log)
                );
            }
        }
    }

    fn exit(&self) -> ChildExit {
        ChildExit { name: self.name, status: *self.exited.borrow(), tail: tail(&self.log) }
    }

    /// Waits until the child exits by itself.
    pub async fn exited(&self) -> Option<ExitStatus> {
        let mut exited = self.exited.clone();
        exited.wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    /// Ends the child with its stop signal, and after a grace period with SIGKILL.
    pub async fn stop(self) -> Result<()> {
        let mut exited = self.exited.clone();
        self.signal(self.stop_signal);
        if timeout(GRACE, exited.wait_for(Option::is_some)).await.is_err() {
            self.signal(Signal::KILL);
            exited.wait_for(Option::is_some).await.with_context(|| format!("waiting for {}", self.name))?;
        }
        Ok(())
    }

    /// Kills the child with SIGKILL and waits for its exit.
    pub async fn kill(self) -> Result<()> {
        let mut exited = self.exited.clone();
        self.signal(Signal::KILL);
        exited.wait_for(Option::is_some).await.with_context(|| format!("waiting for {}", self.name))?;
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        // Fails only if the child has exited.
        let _exited = pidfd_send_signal(&self.pidfd, signal);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        for signal in [self.stop_signal, Signal::KILL] {
            if self.exited.borrow().is_some() {
                return;
            }
            self.signal(signal);
            if wait(&self.pidfd, DROP_GRACE) {
                return;
            }
        }
    }
}

fn spawn_with_pidfd(command: &mut Command) -> io::Result<(std::process::Child, OwnedFd)> {
    let mut child = command.spawn()?;
    // The child isn't waited for yet, so the id is still its own even if it has exited.
    match pidfd(child.id()) {
        Ok(pidfd) => Ok((child, pidfd)),
        Err(error) => {
            child.kill()?;
            child.wait()?;
            Err(error)
        }
    }
}

/// Returns a handle of a process, which never refers to another process that reuses the id.
pub(crate) fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Blocks until a process exits. Returns false if it doesn't within the limit.
pub(crate) fn wait(pidfd: &OwnedFd, limit: Duration) -> bool {
    let Ok(limit) = Timespec::try_from(limit) else { return false };
    matches!(poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&limit)), Ok(1))
}

fn die_with(parent: Pid, stop_signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(stop_signal))?;
    // If the parent died before the line above, no signal will come.
    if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// The exit of a child that was not ready yet.
#[derive(Debug)]
pub(crate) struct ChildExit {
    name: &'static str,
    status: Option<ExitStatus>,
    tail: String,
}

impl ChildExit {
    /// Returns whether it exited because another process has its port.
    pub(crate) fn port_in_use(&self) -> bool {
        self.tail.contains("ddress already in use") || self.tail.contains("Address in use")
    }
}

impl std::error::Error for ChildExit {}

impl fmt::Display for ChildExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.map_or_else(|| "an unknown status".to_owned(), |status| status.to_string());
        write!(f, "{} exited with {status} before it was ready; its log ends:\n{}", self.name, self.tail)
    }
}

/// Returns the log's last lines.
fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}
