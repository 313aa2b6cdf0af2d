//! A child process that can't outlive us, not even if we are killed with -9: the kernel sends it a signal
//! when the thread that began it ends. So every child has a thread of its own, which lives as long as it.
#![expect(unsafe_code, reason = "what runs between fork and exec must be promised to be harmless")]

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

/// How long a child may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(30);
/// The same where nothing of it is kept.
const SHORT_GRACE: Duration = Duration::from_secs(5);

/// A running child. Dropped, it is told to end and waited for.
#[derive(Debug)]
pub struct Child {
    name: &'static str,
    pid: u32,
    /// Signals go through it: a process id may by then be somebody else's.
    pidfd: OwnedFd,
    exited: watch::Receiver<Option<ExitStatus>>,
    farewell: Signal,
    log: PathBuf,
}

impl Child {
    /// Starts the command, its output in `log`, in a process group of its own (Ctrl-C is ours to handle).
    /// `farewell` is the signal that ends it, sent by [`Child::stop`], by drop, or by the kernel when we die.
    ///
    /// # Errors
    /// The log can't be opened, or the command can't be started.
    pub fn spawn(name: &'static str, mut command: Command, farewell: Signal, log: &Path) -> Result<Self> {
        let out = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let out = out.with_context(|| format!("opening {}", log.display()))?;
        command.stdin(std::process::Stdio::null()).stdout(out.try_clone()?).stderr(out).process_group(0);
        let parent = getpid();
        // SAFETY: two system calls, which allocate nothing and take no lock. They run after the change of
        // user, which would clear the death signal.
        unsafe { command.pre_exec(move || die_with(parent, farewell)) };

        let (started, start) = mpsc::channel();
        let (ended, exited) = watch::channel(None);
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut child = match spawn_with_pidfd(&mut command) {
                Ok((child, pidfd)) => {
                    let _nobody_waits = started.send(Ok((child.id(), pidfd)));
                    child
                }
                Err(error) => {
                    let _nobody_waits = started.send(Err(error));
                    return;
                }
            };
            let _nobody_waits = ended.send(child.wait().ok());
        })?;
        let (pid, pidfd) =
            start.recv().context("the child's thread ended")?.with_context(|| format!("starting {name}"))?;
        Ok(Self { name, pid, pidfd, exited, farewell, log: log.to_owned() })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until `probe` says that the child answers; fails as soon as the child has ended.
    pub(crate) async fn ready(&self, limit: Duration, probe: impl AsyncFn() -> bool) -> Result<()> {
        // There is no event for «accepts connections»; asking costs a loopback connect.
        let mut turns = interval(Duration::from_millis(10));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = Instant::now() + limit;
        let mut exited = self.exited.clone();
        loop {
            tokio::select! {
                biased;
                _ = exited.wait_for(Option::is_some) => return Err(self.ended().into()),
                _ = turns.tick() => {}
            }
            if probe().await {
                return Ok(());
            }
            if Instant::now() > deadline {
                anyhow::bail!(
                    "{} doesn't answer after {limit:?}; its log ends:\n{}",
                    self.name,
                    tail(&self.log)
                );
            }
        }
    }

    fn ended(&self) -> ChildExit {
        ChildExit { name: self.name, status: *self.exited.borrow(), tail: tail(&self.log) }
    }

    /// Waits until it has ended by itself.
    pub async fn exited(&self) -> Option<ExitStatus> {
        let mut exited = self.exited.clone();
        exited.wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    /// Ends the child: the farewell signal, and after a long while SIGKILL.
    ///
    /// # Errors
    /// It can't be waited for.
    pub async fn stop(self) -> Result<()> {
        let mut exited = self.exited.clone();
        self.signal(self.farewell);
        if timeout(GRACE, exited.wait_for(Option::is_some)).await.is_err() {
            self.signal(Signal::KILL);
            exited.wait_for(Option::is_some).await.with_context(|| format!("waiting for {}", self.name))?;
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        // The only failure is that it has ended already.
        let _ended = pidfd_send_signal(&self.pidfd, signal);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        for signal in [self.farewell, Signal::KILL] {
            if self.exited.borrow().is_some() {
                return;
            }
            self.signal(signal);
            if wait(&self.pidfd, SHORT_GRACE) {
                return;
            }
        }
    }
}

fn spawn_with_pidfd(command: &mut Command) -> io::Result<(std::process::Child, OwnedFd)> {
    let mut child = command.spawn()?;
    // Not yet waited for, so the id is still the child's, even if it has ended.
    match pidfd(child.id()) {
        Ok(pidfd) => Ok((child, pidfd)),
        Err(error) => {
            child.kill()?;
            child.wait()?;
            Err(error)
        }
    }
}

/// A handle on a process that stays its own.
pub(crate) fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Waits until a process has ended; false if it hasn't within the limit. Blocks.
pub(crate) fn wait(pidfd: &OwnedFd, limit: Duration) -> bool {
    let Ok(limit) = Timespec::try_from(limit) else { return false };
    matches!(poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&limit)), Ok(1))
}

fn die_with(parent: Pid, farewell: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(farewell))?;
    // The parent may have died before the line above: then no signal will come.
    if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// A child that ended before it answered.
#[derive(Debug)]
pub(crate) struct ChildExit {
    name: &'static str,
    status: Option<ExitStatus>,
    tail: String,
}

impl ChildExit {
    /// Whether it ended because somebody else has its port.
    pub(crate) fn port_in_use(&self) -> bool {
        self.tail.contains("ddress already in use") || self.tail.contains("Address in use")
    }
}

impl std::error::Error for ChildExit {}

impl fmt::Display for ChildExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.map_or_else(|| "an unknown status".to_owned(), |status| status.to_string());
        write!(f, "{} ended with {status} before it answered; its log ends:\n{}", self.name, self.tail)
    }
}

/// The log's last lines.
fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}
