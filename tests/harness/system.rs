//! A private system for one test: stores, services and a data folder, all removed on drop.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use local::StackFile;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{Client, until};

/// A running system. Prints its logs if the test fails.
#[derive(Debug)]
pub struct System {
    command: Command,
    up: Child,
    folder: TempDir,
    has_services: bool,
    /// The contents of stack.json when the system became ready.
    pub file: StackFile,
}

impl System {
    /// Starts all stores and services with the settings of `set` on top of the local defaults. `program` is the local
    /// runner; with `processes`, each service is a process.
    pub async fn start(program: &str, processes: bool, set: &[&str]) -> Result<Self> {
        Self::start_with(program, processes.then_some("--processes").as_slice(), set).await
    }

    /// Starts the stores alone, with a port and settings for each service; see [`crate::Replica`].
    pub async fn start_stores(program: &str, set: &[&str]) -> Result<Self> {
        Self::start_with(program, &["--only-stores"], set).await
    }

    /// Starts the system with these options of `up` and these settings.
    pub async fn start_with(program: &str, options: &[&str], set: &[&str]) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("web-runtime-story-").tempdir()?;
        let mut command = Command::new(program);
        command.args(["up", "--detached", "--dir"]).arg(folder.path());
        if !options.contains(&"--port") {
            command.args(["--port", "0"]);
        }
        command.args(options);
        command.args(set.iter().flat_map(|entry| ["--set", entry]));
        let up = spawn(&mut command, folder.path())?;
        let has_services = !options.contains(&"--only-stores");
        let mut system = Self { file: StackFile::default(), command, up, folder, has_services };
        system.file = system.until_ready().await?;
        Ok(system)
    }

    /// Waits until every service is ready and returns stack.json.
    pub async fn until_ready(&mut self) -> Result<StackFile> {
        let path = self.folder.path().join(StackFile::NAME);
        let pid = self.up.id();
        let has_services = self.has_services;
        let up = &mut self.up;
        until("the system to be ready", async || {
            if let Ok(Some(status)) = up.try_wait() {
                return Some(Err(anyhow::anyhow!("the system ended with {status}")));
            }
            let file: StackFile = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
            (file.pid == pid && (!has_services || all_ready(&file).await)).then_some(Ok(file))
        })
        .await?
    }

    /// Stops the system gracefully and starts it again on the same folder.
    pub async fn restart(&mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let status = self.up.wait()?;
        anyhow::ensure!(status.success(), "the system ended with {status}");
        self.up = spawn(&mut self.command, self.folder.path())?;
        self.file = self.until_ready().await?;
        Ok(())
    }

    /// Kills the runner with SIGKILL.
    pub fn kill_runner(&self) -> Result<()> {
        self.signal(Signal::KILL)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.up.id()).ok().and_then(Pid::from_raw).context("no process")?;
        Ok(kill_process(pid, signal)?)
    }

    /// A client without an API key.
    pub fn client(&self) -> Client {
        Client::new(self.file.http_port)
    }

    /// The current contents of stack.json.
    pub fn read_file(&self) -> Result<StackFile> {
        let text = std::fs::read(self.folder.path().join(StackFile::NAME))?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// The current process id of a service.
    pub fn pid_of(&self, service: &str) -> Result<u32> {
        Ok(self.read_file()?.services.get(service).context("no such service")?.pid)
    }

    /// Kills a service with SIGKILL, as the kernel does when memory runs out.
    pub fn kill(&self, service: &str) -> Result<()> {
        kill(self.pid_of(service)?)
    }

    /// Kills a store with SIGKILL and waits until the runner has restarted it on its port.
    pub async fn restart_store(&self, name: &str) -> Result<()> {
        let store = self.read_file()?.stores.remove(name).context("no such store")?;
        kill(store.pid.context("the runner did not start it")?)?;
        until("the store to run again", async || {
            let now = self.read_file().ok()?.stores.remove(name)?;
            (now.pid != store.pid && now.address == store.address).then_some(())
        })
        .await
    }

    /// Empties Redis, as if its disk were lost.
    pub fn empty_redis(&self) -> Result<()> {
        let address = self.file.redis_url.trim_start_matches("redis://").trim_end_matches('/');
        let mut redis = TcpStream::connect(address)?;
        redis.write_all(b"FLUSHALL\r\n")?;
        let mut answer = String::new();
        BufReader::new(redis).read_line(&mut answer)?;
        anyhow::ensure!(answer.starts_with("+OK"), "Redis answered {answer}");
        Ok(())
    }

    /// The data folder of the system.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn kill(pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no process")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

fn spawn(command: &mut Command, folder: &Path) -> Result<Child> {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("story.log"))?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn().context("starting the system")
}

async fn all_ready(file: &StackFile) -> bool {
    for service in file.services.values() {
        let Some(port) =
            service.metrics_url.rsplit(':').next().and_then(|rest| rest.split('/').next()?.parse().ok())
        else {
            return false;
        };
        if !Client::new(port)
            .get("http://localhost/readyz")
            .await
            .is_ok_and(|answer| answer.status.is_success())
        {
            return false;
        }
    }
    true
}

impl Drop for System {
    fn drop(&mut self) {
        if std::thread::panicking() {
            show_logs(self.folder.path());
        }
        let _ended = self.signal(Signal::TERM);
        let _ended = self.up.wait();
    }
}

#[expect(clippy::print_stderr, reason = "shows why the test failed")]
fn show_logs(folder: &Path) {
    let logs =
        std::fs::read_dir(folder.join("logs")).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in logs.chain([folder.join("story.log")]) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        eprintln!("--- {}\n{}", path.display(), lines[lines.len().saturating_sub(30)..].join("\n"));
    }
}
