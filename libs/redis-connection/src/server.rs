//! The address and the credentials of a Redis server.

use std::path::PathBuf;
use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, TlsCertificates};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret as _, SecretString};

use crate::error::Error;

/// The kernel closes the connection to a vanished peer after about half a minute, also if no call is pending.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const USER_TIMEOUT: Duration = Duration::from_secs(20);

/// A Redis server. A URL alone is one, too.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// `redis://` or `rediss://`, with or without a password.
    pub url: SecretString,
    /// Replaces the URL's password unless it is empty.
    pub password: SecretString,
    /// Roots in PEM that the certificate of a `rediss://` server must lead to; empty for the public authorities'.
    pub ca_file: PathBuf,
}

impl From<&str> for Server {
    fn from(url: &str) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}

impl From<&String> for Server {
    fn from(url: &String) -> Self {
        url.as_str().into()
    }
}

impl From<String> for Server {
    fn from(url: String) -> Self {
        url.as_str().into()
    }
}

/// Returns a client with sockets that detect a vanished peer. Fails only if a setting is invalid.
pub fn client(server: impl Into<Server>) -> Result<Client, Error> {
    let server = server.into();
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_INTERVAL);
    let tcp = TcpSettings::default().set_keepalive(keepalive).set_user_timeout(USER_TIMEOUT);
    let mut info = server.url.expose_secret().into_connection_info()?.set_tcp_settings(tcp);
    if !server.password.expose_secret().is_empty() {
        let settings = info.redis_settings().clone().set_password(server.password.expose_secret());
        info = info.set_redis_settings(settings);
    }
    let root_cert = server.root_certificates(&info)?;
    Ok(match info.addr() {
        ConnectionAddr::TcpTls { .. } => {
            Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })?
        }
        _ => Client::open(info)?,
    })
}

impl Server {
    /// Reads `ca_file`; `None` if it is not set.
    fn root_certificates(&self, info: &ConnectionInfo) -> Result<Option<Vec<u8>>, Error> {
        if self.ca_file.as_os_str().is_empty() {
            return Ok(None);
        }
        if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            return Err(Error::Setting(
                "redis.ca_file needs a redis.url that begins with rediss://".to_owned(),
            ));
        }
        let wrong =
            |reason: &str| Error::Setting(format!("redis.ca_file: {}: {reason}", self.ca_file.display()));
        let roots = std::fs::read(&self.ca_file).map_err(|error| wrong(&error.to_string()))?;
        let has_certificate =
            CertificateDer::pem_slice_iter(&roots).next().is_some_and(|first| first.is_ok());
        if !has_certificate {
            return Err(wrong("it has no certificate in PEM"));
        }
        Ok(Some(roots))
    }
}
