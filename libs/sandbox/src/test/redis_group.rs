//! A Redis server with a replica, watched by three Sentinels.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::backends::must;
use super::folder::{TestFolder, folder};
use super::wait::{eventually, until};
use crate::child::Child;
use crate::port::{Reserved, on_loopback, reserve};
use crate::programs::{self, Source};
use crate::progress::Progress;

const SENTINELS: usize = 3;
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Two servers under three Sentinels. All have passwords: the servers one, the Sentinels another.
#[derive(Debug)]
pub struct RedisGroup {
    servers: Vec<Node>,
    sentinels: Vec<Node>,
    _folder: TestFolder,
}

#[derive(Debug)]
struct Node {
    child: Child,
    port: Reserved,
}

impl RedisGroup {
    /// The name by which the Sentinels monitor the primary.
    pub const NAME: &'static str = "webruntime";
    /// The password of the servers.
    pub const PASSWORD: &'static str = "password-of-servers";
    /// The password of the Sentinels.
    pub const SENTINEL_PASSWORD: &'static str = "password-of-sentinels";

    /// Starts all of them, and waits until each Sentinel knows the replica and the other Sentinels.
    pub async fn start() -> Self {
        let folder = folder();
        must(std::fs::create_dir_all(folder.path()).map_err(Into::into));
        let group = must(Self::start_in(folder).await);
        let is_complete =
            format!("status=ok,address=127.0.0.1:{},slaves=1,sentinels=3", group.servers[0].port.port);
        until(async || group.views().await.iter().all(|view| view.contains(&is_complete))).await;
        group
    }

    async fn start_in(folder: TestFolder) -> Result<Self> {
        let program =
            tokio::task::spawn_blocking(|| programs::redis(Source::Any, &Progress::silent())).await??;
        let password = Self::PASSWORD;
        let mut servers = Vec::<Node>::new();
        for name in ["one", "two"] {
            let mut settings = format!("save \"\"\nrequirepass {password}\nmasterauth {password}\n");
            if let Some(primary) = servers.first() {
                settings += &format!("replicaof 127.0.0.1 {}\n", primary.port.port);
            }
            servers.push(Node::start(&program, &folder.path(), name, &settings, &[]).await?);
        }
        let (group, sentinel_password, primary) = (Self::NAME, Self::SENTINEL_PASSWORD, servers[0].port.port);
        let settings = format!(
            "requirepass {sentinel_password}\nsentinel sentinel-pass {sentinel_password}\n\
             sentinel monitor {group} 127.0.0.1 {primary} 2\nsentinel auth-pass {group} {password}\n\
             sentinel down-after-milliseconds {group} 500\nsentinel failover-timeout {group} 2000\n"
        );
        let mut sentinels = Vec::new();
        for number in 0..SENTINELS {
            let name = format!("sentinel{number}");
            sentinels.push(Node::start(&program, &folder.path(), &name, &settings, &["--sentinel"]).await?);
        }
        Ok(Self { servers, sentinels, _folder: folder })
    }

    /// Returns `host:port` of each Sentinel.
    #[must_use]
    pub fn sentinels(&self) -> Vec<String> {
        self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port.port)).collect()
    }

    /// Returns the ports of the servers that run.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(|server| server.port.port).collect()
    }

    /// Returns the port of the server that all Sentinels take for the primary, once they agree.
    pub async fn primary(&self) -> u16 {
        let port_of =
            |view: &String| view.split_once("address=127.0.0.1:")?.1.split(',').next()?.parse().ok();
        eventually(async || {
            let ports: Vec<Option<u16>> = self.views().await.iter().map(port_of).collect();
            ports.windows(2).all(|pair| pair[0] == pair[1]).then_some(*ports.first()?)?
        })
        .await
    }

    /// Kills the primary with SIGKILL and waits for its exit. It never returns.
    pub async fn kill_primary(&mut self) {
        let port = self.primary().await;
        let at = self.servers.iter().position(|server| server.port.port == port);
        let server = self.servers.remove(must(at.context("the primary does not run")));
        let pid = must(i32::try_from(server.child.pid()).ok().and_then(Pid::from_raw).context("no process"));
        must(kill_process(pid, Signal::KILL).map_err(Into::into));
        must(server.child.stop().await);
    }

    /// Makes the replica the primary while both run, and returns once the old primary is its replica.
    pub async fn switch(&self) {
        let before = self.primary().await;
        let request = format!("SENTINEL FAILOVER {}", Self::NAME);
        let refused = async || ask(&self.sentinels[0], Self::SENTINEL_PASSWORD, &request).await;
        until(async || refused().await.is_ok_and(|answer| answer.starts_with("+OK"))).await;
        let old = self.servers.iter().find(|server| server.port.port == before);
        let old = must(old.context("the primary does not run"));
        let role = async || ask(old, Self::PASSWORD, "INFO replication").await.unwrap_or_default();
        until(async || role().await.contains("role:slave")).await;
    }

    /// Returns what each Sentinel knows.
    async fn views(&self) -> Vec<String> {
        let mut views = Vec::new();
        for sentinel in &self.sentinels {
            views.push(ask(sentinel, Self::SENTINEL_PASSWORD, "INFO sentinel").await.unwrap_or_default());
        }
        views
    }
}

impl Node {
    async fn start(
        program: &Path,
        base: &Path,
        name: &str,
        settings: &str,
        options: &[&str],
    ) -> Result<Self> {
        let folder = base.join(name);
        std::fs::create_dir_all(&folder)?;
        let port = reserve()?;
        let file = folder.join("redis.conf");
        std::fs::write(
            &file,
            format!("port {}\nbind 127.0.0.1\ndir {}\n{settings}", port.port, folder.display()),
        )?;
        let mut command = Command::new(program);
        command.arg(&file).args(options);
        let child = Child::spawn("Redis", command, Signal::TERM, &folder.join("log"))?;
        let accepts = async || TcpStream::connect(on_loopback(port.port)).await.is_ok();
        child.wait_until_ready(START_TIMEOUT, accepts).await?;
        Ok(Self { child, port })
    }
}

/// Sends a command after the password and returns its answer: a line, or the contents of a bulk string.
async fn ask(node: &Node, password: &str, command: &str) -> Result<String> {
    let mut server = BufReader::new(TcpStream::connect(on_loopback(node.port.port)).await?);
    server.write_all(format!("AUTH {password}\r\n{command}\r\n").as_bytes()).await?;
    let mut line = String::new();
    server.read_line(&mut line).await?;
    line.clear();
    server.read_line(&mut line).await?;
    let Some(length) = line.trim_end().strip_prefix('$') else { return Ok(line) };
    let mut answer = vec![0; length.parse()?];
    server.read_exact(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
