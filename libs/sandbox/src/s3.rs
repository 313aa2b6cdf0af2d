//! A private S3 server for tests: `s3s-fs`, which verifies signatures as Amazon S3 does and stores objects in a directory.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use tokio::net::TcpStream;

use crate::child::Child;
use crate::dirs::{self, TempDir};
use crate::port;

const NAME: &str = "S3";
const VERSION: &str = "0.14.1";
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running S3 server with one bucket. Dropping it stops it.
#[derive(Debug)]
pub struct S3 {
    child: Child,
    port: u16,
    // Declared after the child, so that it is deleted once the child has exited.
    temporary: TempDir,
}

impl S3 {
    /// The bucket's name.
    pub const BUCKET: &str = "test-bucket";
    /// The access key's id.
    pub const KEY_ID: &str = "AKTEST";
    /// The secret access key.
    pub const SECRET: &str = "a-secret-for-tests-alone";

    /// Starts the server and waits until it accepts connections.
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
            let child = Child::spawn(NAME, command, Signal::TERM, &log)?;
            let accepts = async || TcpStream::connect(port::on_loopback(port)).await.is_ok();
            child.wait_until_ready(START_TIMEOUT, accepts).await?;
            Ok((child, port))
        })
        .await?;
        Ok(Self { child, port, temporary })
    }

    /// Returns the server's URL.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the directory of the bucket's objects.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.temporary.path.join("data").join(Self::BUCKET)
    }

    /// Returns the server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }
}

/// Returns the server's program from the cache, built once with cargo, which takes two minutes.
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
    let output = command.output().context("running cargo install")?;
    if !output.status.success() {
        bail!("building {name}, an S3 server for tests: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(built)
}
