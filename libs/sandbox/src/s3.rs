//! A private S3 server: `s3s-fs`, which checks signatures as Amazon's does and keeps objects in a folder.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use tokio::net::TcpStream;

use crate::child::Child;
use crate::dirs::{self, TempDir};
use crate::port;

const WHAT: &str = "S3";
const VERSION: &str = "0.14.1";
const PATIENCE: Duration = Duration::from_secs(30);

/// A running S3 server with one bucket. Dropped, it is stopped.
#[derive(Debug)]
pub struct S3 {
    child: Child,
    port: u16,
    // After the child: it goes once nobody lives in it.
    temporary: TempDir,
}

impl S3 {
    /// The one bucket.
    pub const BUCKET: &str = "test-bucket";
    /// The id of the one key.
    pub const KEY_ID: &str = "AKTEST";
    /// The one key.
    pub const SECRET: &str = "a-secret-for-tests-alone";

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// No program can be had, or it ends instead of answering.
    pub async fn start() -> Result<Self> {
        let program = tokio::task::spawn_blocking(program).await??;
        let temporary = TempDir::new("s3")?;
        let root = temporary.path.join("data");
        std::fs::create_dir_all(root.join(Self::BUCKET))?;
        let log = temporary.path.join("log");
        let (child, port) = port::start_on(0, async |port| {
            let mut command = Command::new(&program);
            command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
            command.args(["--access-key", Self::KEY_ID, "--secret-key", Self::SECRET]).arg(&root);
            let child = Child::spawn(WHAT, command, Signal::TERM, &log)?;
            let answers = async || TcpStream::connect(port::on_loopback(port)).await.is_ok();
            child.ready(PATIENCE, answers).await?;
            Ok((child, port))
        })
        .await?;
        Ok(Self { child, port, temporary })
    }

    /// Its address.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Where it keeps the bucket's objects.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.temporary.path.join("data").join(Self::BUCKET)
    }

    /// The server's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }
}

/// The server's program: installed, else built once for this user with cargo, which takes two minutes.
fn program() -> Result<PathBuf> {
    let name = format!("s3s-fs-{VERSION}");
    let home = dirs::cache()?.join(&name);
    let built = home.join("bin/s3s-fs");
    if built.is_file() {
        return Ok(built);
    }
    let lock = std::fs::File::create(home.with_extension("lock"))?;
    lock.lock()?;
    if built.is_file() {
        return Ok(built);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["install", "s3s-fs", "--version", VERSION, "--locked", "--features", "binary", "--quiet"]);
    command.arg("--root").arg(&home).stdin(Stdio::null());
    let said = command.output().context("running cargo install")?;
    if !said.status.success() {
        bail!("building {name}, an S3 server for tests: {}", String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(built)
}
