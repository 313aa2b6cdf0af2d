//! A private certificate authority for tests: Let's Encrypt's `pebble` with `pebble-challtestsrv` as its DNS server. Both are
//! installed, or else unpacked from Debian's package into the user's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::Signal;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::child::Child;
use crate::dirs::TempDir;
use crate::port::{self, Reserved};
use crate::programs::{debian, on_path};

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of the authority.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Environment variables that inject faults, such as `PEBBLE_WFE_NONCEREJECT`.
    pub environment: Vec<(&'static str, String)>,
    /// Id and key in base64url of the external account binding, if it is required.
    pub external_account: Option<(String, String)>,
    /// Port of the DNS server on loopback that it asks, if it is not its own.
    pub dns_port: Option<u16>,
}

/// A running authority. Dropping it stops it.
#[derive(Debug)]
pub struct Pebble {
    authority: Option<Child>,
    _dns: Child,
    programs: Programs,
    environment: Vec<(&'static str, String)>,
    asked_dns_port: u16,
    ports: Ports,
    // Declared after the children, so that it is deleted once they have exited.
    temporary: TempDir,
}

/// Where the parts of an authority are, for another process.
#[derive(Debug, Serialize)]
pub struct Announcement {
    /// The URL of the ACME directory.
    directory_url: String,
    /// The file of the root that the certificates of its own APIs lead to.
    ca_file: PathBuf,
    /// The URL of its management, with `/roots/0` and `/intermediates/0`: what it issues leads to them.
    management_url: String,
    /// The port at which it checks HTTP-01.
    http_port: u16,
    /// The port at which it checks TLS-ALPN-01.
    tls_port: u16,
    /// `host:port` of the DNS server that it asks.
    dns_address: String,
    /// The URL of that server's management, which takes POST requests such as `/set-txt`.
    dns_management_url: String,
}

#[derive(Debug)]
struct Ports {
    acme: Reserved,
    management: Reserved,
    http: Reserved,
    tls: Reserved,
    dns: Reserved,
    dns_management: Reserved,
}

#[derive(Debug, Clone)]
struct Programs {
    pebble: PathBuf,
    dns: PathBuf,
}

impl Pebble {
    /// Returns why the authority can't be had here, as without a network.
    pub async fn unavailable() -> Option<String> {
        let found = tokio::task::spawn_blocking(programs).await;
        found.map_err(anyhow::Error::from).and_then(|found| found).err().map(|error| format!("{error:#}"))
    }

    /// Starts the authority and its DNS server, and waits until both accept connections. Every name resolves to
    /// 127.0.0.1.
    pub async fn start(options: &Options) -> Result<Self> {
        let programs = tokio::task::spawn_blocking(programs).await??;
        let temporary = TempDir::new("pebble")?;
        let folder = &temporary.path;
        let ports = Ports {
            acme: port::reserve()?,
            management: port::reserve()?,
            http: port::reserve()?,
            tls: port::reserve()?,
            dns: port::reserve()?,
            dns_management: port::reserve()?,
        };
        write_api_certificate(folder)?;
        let keys: Value = options.external_account.iter().cloned().collect();
        let config = json!({ "pebble": {
            "listenAddress": port::on_loopback(ports.acme.port).to_string(),
            "managementListenAddress": port::on_loopback(ports.management.port).to_string(),
            "certificate": folder.join("api.pem"),
            "privateKey": folder.join("api.key"),
            "httpPort": ports.http.port,
            "tlsPort": ports.tls.port,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": options.external_account.is_some(),
            "externalAccountMACKeys": keys,
        }});
        fs::write(folder.join("pebble.json"), config.to_string())?;
        let dns = start_dns(&programs, &ports, folder).await?;
        let mut pebble = Self {
            authority: None,
            _dns: dns,
            programs,
            environment: options.environment.clone(),
            asked_dns_port: options.dns_port.unwrap_or(ports.dns.port),
            ports,
            temporary,
        };
        pebble.restart().await?;
        Ok(pebble)
    }

    /// Kills the authority with SIGKILL. It keeps nothing: a restarted one knows no account and no order.
    pub async fn kill(&mut self) -> Result<()> {
        let child = self.authority.take().context("it is not running")?;
        child.kill().await
    }

    /// Restarts a killed authority on the same ports.
    pub async fn restart(&mut self) -> Result<()> {
        let mut command = Command::new(&self.programs.pebble);
        command.arg("-config").arg(self.temporary.path.join("pebble.json"));
        command.arg("-dnsserver").arg(port::on_loopback(self.asked_dns_port).to_string());
        // Without the sleep before each check that simulates a slow authority, its random faults, and orders that need no
        // check because an earlier one of the same name was right.
        command
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "0")
            .env("PEBBLE_AUTHZREUSE", "0");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let child = Child::spawn("pebble", command, Signal::TERM, &self.log_file())?;
        wait_for(&child, self.ports.acme.port).await?;
        wait_for(&child, self.ports.management.port).await?;
        self.authority = Some(child);
        Ok(())
    }

    /// Returns the URL of the directory.
    #[must_use]
    pub fn directory_url(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.ports.acme.port)
    }

    /// Returns the file of the root that the API's own certificate leads to.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.temporary.path.join("ca.pem")
    }

    /// Returns the port at which it checks HTTP-01.
    #[must_use]
    pub fn http_port(&self) -> u16 {
        self.ports.http.port
    }

    /// Returns the port at which it checks TLS-ALPN-01.
    #[must_use]
    pub fn tls_port(&self) -> u16 {
        self.ports.tls.port
    }

    /// Returns the port of the DNS server's management, which takes POST requests such as `/set-txt`.
    #[must_use]
    pub fn dns_management_port(&self) -> u16 {
        self.ports.dns_management.port
    }

    /// Returns the URL of the management, with `/roots/0`: what it issues leads there. A restart makes another root.
    #[must_use]
    pub fn management_url(&self) -> String {
        format!("https://{}", port::on_loopback(self.ports.management.port))
    }

    /// Returns `host:port` of the DNS server.
    #[must_use]
    pub fn dns_address(&self) -> String {
        port::on_loopback(self.ports.dns.port).to_string()
    }

    /// Returns where its parts are.
    #[must_use]
    pub fn announcement(&self) -> Announcement {
        Announcement {
            directory_url: self.directory_url(),
            ca_file: self.ca_file(),
            management_url: self.management_url(),
            http_port: self.http_port(),
            tls_port: self.tls_port(),
            dns_address: self.dns_address(),
            dns_management_url: format!("http://{}", port::on_loopback(self.dns_management_port())),
        }
    }

    /// Sets the IPv4 address of hosts without one of their own; none if it is empty.
    pub async fn set_default_address(&self, address: &str) -> Result<()> {
        self.manage_dns("/set-default-ipv4", &json!({ "ip": address })).await
    }

    /// Adds a TXT record.
    pub async fn add_text(&self, name: &str, text: &str) -> Result<()> {
        // It knows a name only with the final dot.
        self.manage_dns("/set-txt", &json!({ "host": format!("{name}."), "value": text })).await
    }

    /// Sets the IPv4 addresses of a host; none if it shall not resolve.
    pub async fn set_addresses(&self, host: &str, addresses: &[&str]) -> Result<()> {
        // Addresses that are added stand beside the earlier ones.
        self.manage_dns("/clear-a", &json!({ "host": host })).await?;
        self.manage_dns("/add-a", &json!({ "host": host, "addresses": addresses })).await
    }

    /// Returns the log of the authority since its first start.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the number of certificates that it issued.
    #[must_use]
    pub fn issued(&self) -> usize {
        self.log().matches("Issued certificate serial").count()
    }

    /// Returns the number of orders that it accepted.
    #[must_use]
    pub fn orders(&self) -> usize {
        self.log().matches("Added order ").count()
    }

    fn log_file(&self) -> PathBuf {
        self.temporary.path.join("log")
    }

    async fn manage_dns(&self, path: &str, body: &Value) -> Result<()> {
        let mut connection = TcpStream::connect(port::on_loopback(self.ports.dns_management.port)).await?;
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        connection.read_to_string(&mut response).await?;
        if !response.starts_with("HTTP/1.1 200") {
            bail!("pebble-challtestsrv {path}: {response}");
        }
        Ok(())
    }
}

async fn start_dns(programs: &Programs, ports: &Ports, folder: &Path) -> Result<Child> {
    let mut command = Command::new(&programs.dns);
    command.arg("-management").arg(port::on_loopback(ports.dns_management.port).to_string());
    command.arg("-dns01").arg(port::on_loopback(ports.dns.port).to_string());
    command.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""]);
    let child = Child::spawn("pebble-challtestsrv", command, Signal::TERM, &folder.join("dns.log"))?;
    wait_for(&child, ports.dns_management.port).await?;
    wait_for(&child, ports.dns.port).await?;
    Ok(child)
}

async fn wait_for(child: &Child, port: u16) -> Result<()> {
    let accepts = async || TcpStream::connect(port::on_loopback(port)).await.is_ok();
    child.wait_until_ready(START_TIMEOUT, accepts).await
}

/// Writes a root and the certificate of the API. rustls rejects a root as a server's certificate, so there are two.
fn write_api_certificate(folder: &Path) -> Result<()> {
    let mut root = CertificateParams::new(Vec::new())?;
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Not the name of the other one: OpenSSL would take that for self-signed.
    root.distinguished_name.push(DnType::CommonName, "Root of the test's authority");
    let root = CertifiedIssuer::self_signed(root, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let api = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &root)?;
    fs::write(folder.join("ca.pem"), root.pem())?;
    fs::write(folder.join("api.pem"), api.pem())?;
    fs::write(folder.join("api.key"), key.serialize_pem())?;
    Ok(())
}

/// Returns the installed programs, or those of Debian's package from the cache.
fn programs() -> Result<Programs> {
    let installed = on_path("pebble").zip(on_path("pebble-challtestsrv"));
    if let Some((pebble, dns)) = installed {
        return Ok(Programs { pebble, dns });
    }
    let package = debian::unpacked("pebble")?;
    Ok(Programs {
        pebble: package.program("usr/bin/pebble"),
        dns: package.program("usr/bin/pebble-challtestsrv"),
    })
}
