//! An authoritative DNS server that accepts dynamic updates, for tests: Knot DNS, installed, or else unpacked from Debian's
//! package into the user's cache.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use rustix::process::Signal;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::child::Child;
use crate::dirs::TempDir;
use crate::port::{self, Reserved};
use crate::programs::{debian, on_path};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// A running server of one zone. Dropping it stops it.
#[derive(Debug)]
pub struct Knot {
    child: Child,
    port: Reserved,
    // Declared after the child, so that it is deleted once that has exited.
    temporary: TempDir,
}

/// A key that clients sign with.
#[derive(Debug, Clone, Copy)]
pub struct UpdateKey<'a> {
    /// The key's name.
    pub name: &'a str,
    /// Its algorithm, such as `hmac-sha256`.
    pub algorithm: &'a str,
    /// The shared secret.
    pub secret: &'a [u8],
    /// Whether it may change the zone.
    pub may_update: bool,
}

struct Program {
    path: PathBuf,
    library_path: Option<OsString>,
}

impl Knot {
    /// Returns why the server can't be had here, as without a network.
    pub async fn unavailable() -> Option<String> {
        let found = tokio::task::spawn_blocking(program).await;
        found.map_err(anyhow::Error::from).and_then(|found| found).err().map(|error| format!("{error:#}"))
    }

    /// Starts a server of an otherwise empty zone, and waits until it accepts connections.
    pub async fn start(zone: &str, keys: &[UpdateKey<'_>]) -> Result<Self> {
        let program = tokio::task::spawn_blocking(program).await??;
        let temporary = TempDir::new("knot")?;
        let folder = &temporary.path;
        let port = port::reserve()?;
        fs::create_dir(folder.join("db"))?;
        let records = format!(
            "{zone}. 60 SOA ns.{zone}. admin.{zone}. 1 3600 600 86400 60\n\
             {zone}. 60 NS ns.{zone}.\nns.{zone}. 60 A 127.0.0.1\n"
        );
        fs::write(folder.join("zone"), records)?;
        fs::write(
            folder.join("knot.conf"),
            configuration(zone, keys, port.port, &folder.display().to_string()),
        )?;
        let mut command = Command::new(&program.path);
        command.arg("-c").arg(folder.join("knot.conf"));
        if let Some(library_path) = program.library_path {
            command.env("LD_LIBRARY_PATH", library_path);
        }
        let child = Child::spawn("knotd", command, Signal::TERM, &folder.join("log"))?;
        let address = port::on_loopback(port.port);
        let accepts = async || TcpStream::connect(address).await.is_ok();
        child.wait_until_ready(START_TIMEOUT, accepts).await?;
        Ok(Self { child, port, temporary })
    }

    /// Returns `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        port::on_loopback(self.port.port).to_string()
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.port
    }

    /// Kills the server with SIGKILL. Its port refuses connections then.
    pub async fn kill(self) -> Result<()> {
        self.child.kill().await
    }

    /// Returns what the server logged.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.temporary.path.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the TXT values of a name.
    pub async fn texts(&self, name: &str) -> Result<Vec<String>> {
        let mut question = Message::query();
        question.add_query(Query::query(Name::from_ascii(format!("{name}."))?, RecordType::TXT));
        let socket = UdpSocket::bind(port::on_loopback(0)).await?;
        socket.connect(port::on_loopback(self.port.port)).await?;
        socket.send(&question.to_vec()?).await?;
        let mut buffer = vec![0; 4_096];
        let length = timeout(QUERY_TIMEOUT, socket.recv(&mut buffer)).await.context("no response")??;
        let response = Message::from_vec(buffer.get(..length).unwrap_or_default())?;
        let text = |data: &RData| match data {
            RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
            _ => None,
        };
        Ok(response.answers.iter().filter_map(|record| text(&record.data)).collect())
    }
}

fn configuration(zone: &str, keys: &[UpdateKey<'_>], port: u16, folder: &str) -> String {
    let mut text = format!(
        "server:\n    rundir: \"{folder}\"\n    listen: 127.0.0.1@{port}\n    udp-workers: 1\n    tcp-workers: 2\n    \
         background-workers: 1\nlog:\n  - target: stderr\n    any: info\ndatabase:\n    storage: \"{folder}/db\"\nkey:\n"
    );
    let mut rules = String::new();
    for key in keys {
        let UpdateKey { name, algorithm, secret, may_update } = key;
        let secret = STANDARD.encode(secret);
        text.push_str(&format!("  - id: {name}.\n    algorithm: {algorithm}\n    secret: {secret}\n"));
        if *may_update {
            rules.push_str(&format!("  - id: {name}\n    key: {name}.\n    action: update\n"));
        }
    }
    let allowed: Vec<&str> = keys.iter().filter(|key| key.may_update).map(|key| key.name).collect();
    text.push_str(&format!(
        "acl:\n{rules}zone:\n  - domain: {zone}.\n    file: \"{folder}/zone\"\n    acl: [{}]\n",
        allowed.join(", ")
    ));
    text
}

/// Returns the installed program, or that of Debian's package from the cache.
fn program() -> Result<Program> {
    if let Some(path) = on_path("knotd") {
        return Ok(Program { path, library_path: None });
    }
    let package = debian::unpacked("knot")?;
    Ok(Program { path: package.program("usr/sbin/knotd"), library_path: Some(package.library_path()?) })
}
