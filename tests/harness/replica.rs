//! One process of a service, beside others of the same service, over the stores of a system.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sandbox::port::{self, Reserved};
use tokio::process::{Child, Command};

use crate::{Client, System, until};

/// A process that the test starts and restarts itself. It is killed on drop.
#[derive(Debug)]
pub struct Replica {
    program: String,
    service: &'static str,
    folder: PathBuf,
    set: Vec<String>,
    main: Reserved,
    ops: Reserved,
    /// A socket that this process keeps and passes on, as systemd does.
    socket: Option<TcpListener>,
    process: Option<Child>,
}

impl Replica {
    /// Starts a service on ports of its own, with these settings on top of the system's, and waits until it is ready.
    pub async fn start(program: &str, system: &System, service: &'static str, set: &[&str]) -> Result<Self> {
        let mut replica = Self::prepare(program, system, service, set)?;
        replica.begin()?;
        replica.until_ready().await?;
        Ok(replica)
    }

    /// Starts a service with a socket that outlives it.
    pub async fn start_with_socket(
        program: &str,
        system: &System,
        service: &'static str,
        set: &[&str],
    ) -> Result<Self> {
        let mut replica = Self::prepare(program, system, service, set)?;
        replica.socket = Some(TcpListener::bind(("127.0.0.1", replica.main.port))?);
        replica.begin()?;
        replica.until_ready().await?;
        Ok(replica)
    }

    fn prepare(program: &str, system: &System, service: &'static str, set: &[&str]) -> Result<Self> {
        Ok(Self {
            program: program.to_owned(),
            service,
            folder: system.folder().to_owned(),
            set: set.iter().map(ToString::to_string).collect(),
            main: port::reserve()?,
            ops: port::reserve()?,
            socket: None,
            process: None,
        })
    }

    /// The port of its own traffic.
    pub fn port(&self) -> u16 {
        self.main.port
    }

    /// The port of `/readyz`.
    pub fn ops_port(&self) -> u16 {
        self.ops.port
    }

    /// The URL of its own traffic.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.main.port)
    }

    /// Starts the process. It is not ready yet.
    pub fn begin(&mut self) -> Result<()> {
        let log = self.folder.join(format!("logs/{}-{}.log", self.service, self.main.port));
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let mut command = match &self.socket {
            None => Command::new(&self.program),
            Some(socket) => {
                // Passed as standard input, moved to 3 by the shell: `LISTEN_PID` is known only in the new process.
                let passes = "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\"";
                let mut command = Command::new("sh");
                command.args(["-c", passes, &self.program]).stdin(OwnedFd::from(socket.try_clone()?));
                command
            }
        };
        if self.socket.is_none() {
            command.stdin(Stdio::null());
        }
        command.args(["service", self.service, "--dir"]).arg(&self.folder);
        let ports = [
            format!("listen.main=127.0.0.1:{}", self.main.port),
            format!("listen.ops=127.0.0.1:{}", self.ops.port),
        ];
        command.args(ports.iter().chain(&self.set).flat_map(|entry| ["--set", entry]));
        let process = command.stdout(log.try_clone()?).stderr(log).kill_on_drop(true).spawn();
        self.process = Some(process.with_context(|| format!("starting {}", self.service))?);
        Ok(())
    }

    /// Waits until it is ready.
    pub async fn until_ready(&mut self) -> Result<()> {
        let ops = Client::new(self.ops.port);
        let process = self.process.as_mut().context("it was not started")?;
        let condition = format!("{} to be ready", self.service);
        let ready = until(&condition, async || {
            if let Ok(Some(status)) = process.try_wait() {
                return Some(Err(anyhow::anyhow!("it ended with {status}")));
            }
            let answer = ops.get("http://localhost/readyz").await.ok()?;
            answer.status.is_success().then_some(Ok(()))
        });
        ready.await?.with_context(|| self.service.to_owned())
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.process.as_ref().and_then(Child::id).context("it does not run")?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no process")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits until the process has ended.
    pub async fn ended(&mut self) -> Result<std::process::ExitStatus> {
        Ok(self.process.take().context("it does not run")?.wait().await?)
    }

    /// Ends the process with SIGTERM, as a deployer does, starts it again at once, and waits until it is ready. Returns how
    /// long the shutdown took, and the time from its end until it was ready.
    pub async fn restart(&mut self) -> Result<(Duration, Duration)> {
        let began = Instant::now();
        self.signal(Signal::TERM)?;
        let ops = Client::new(self.ops.port);
        let shutting_down = async || {
            let Ok(answer) = ops.get("http://localhost/readyz").await else { return false };
            answer.status == 503 && answer.json()["shutting_down"] == true
        };
        let process = self.process.as_mut().context("it does not run")?;
        let mut was_reported = false;
        let status = loop {
            was_reported = was_reported || shutting_down().await;
            if let Ok(status) = tokio::time::timeout(Duration::from_millis(20), process.wait()).await {
                break status?;
            }
        };
        let stopped = Instant::now();
        self.begin()?;
        ensure!(status.success(), "{} ended with {status}", self.service);
        let drains = !self.set.iter().any(|entry| entry == "listen.drain=0s");
        ensure!(was_reported || !drains, "{} was never reported as shutting down", self.service);
        self.until_ready().await?;
        Ok((stopped - began, stopped.elapsed()))
    }
}
