//! The address and the credentials of a Redis server, or of the Sentinels that know it.

use std::path::PathBuf;
use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, TlsCertificates};
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
    /// `redis://` or `rediss://`, with or without a password. With `sentinels`, its host and port are not used.
    pub url: SecretString,
    /// Replaces the URL's password unless it is empty.
    pub password: SecretString,
    /// Roots in PEM that the certificate of a `rediss://` server must lead to; empty for the public authorities'.
    pub ca_file: PathBuf,
    /// `host:port` of the Sentinels that name the primary; none for the server of the URL.
    pub sentinels: Vec<String>,
    /// The name by which the Sentinels monitor the primary.
    pub master_name: String,
    /// The password of the Sentinels themselves.
    pub sentinel_password: SecretString,
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

impl Server {
    /// Returns the server of the URL with the password.
    pub(crate) fn connection_info(&self) -> Result<ConnectionInfo, Error> {
        let info = self.url.expose_secret().into_connection_info()?.set_tcp_settings(tcp_settings());
        let password = self.password.expose_secret();
        if password.is_empty() {
            return Ok(info);
        }
        let settings = info.redis_settings().clone().set_password(password);
        Ok(info.set_redis_settings(settings))
    }

    /// Returns the addresses of the Sentinels. They use TLS if the URL does, unless an address says otherwise.
    pub(crate) fn sentinel_addresses(&self) -> Result<Vec<ConnectionAddr>, Error> {
        let scheme = if self.url.expose_secret().starts_with("rediss://") { "rediss" } else { "redis" };
        let addresses = self.sentinels.iter().map(|sentinel| {
            let wrong = |reason: &str| Error::Setting(format!("redis.sentinels: {reason}"));
            if sentinel.contains('@') {
                return Err(wrong("an address has a password: set redis.sentinel_password instead"));
            }
            let url =
                if sentinel.contains("://") { sentinel.clone() } else { format!("{scheme}://{sentinel}") };
            let info = url.as_str().into_connection_info();
            match info.map(|info| info.addr().clone()) {
                Ok(address @ (ConnectionAddr::Tcp(..) | ConnectionAddr::TcpTls { .. })) => Ok(address),
                _ => Err(wrong(&format!("`{sentinel}` is no host:port"))),
            }
        });
        let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        let with_tls = addresses.iter().filter(|address| is_tls(address)).count();
        if with_tls != 0 && with_tls != addresses.len() {
            return Err(Error::Setting("redis.sentinels: either all or none use rediss://".to_owned()));
        }
        Ok(addresses)
    }

    /// Reads `ca_file`; `None` if it is not set. `is_used` says whether any connection uses TLS.
    pub(crate) fn certificates(&self, is_used: bool) -> Result<Option<TlsCertificates>, Error> {
        if self.ca_file.as_os_str().is_empty() {
            return Ok(None);
        }
        if !is_used {
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
        Ok(Some(TlsCertificates { client_tls: None, root_cert: Some(roots) }))
    }
}

pub(crate) fn is_tls(address: &ConnectionAddr) -> bool {
    matches!(address, ConnectionAddr::TcpTls { .. })
}

/// Returns settings of sockets that detect a vanished peer.
pub(crate) fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_INTERVAL);
    TcpSettings::default().set_keepalive(keepalive).set_user_timeout(USER_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(url: &str, sentinels: &[&str]) -> Result<Vec<String>, String> {
        let sentinels = sentinels.iter().map(ToString::to_string).collect();
        let server = Server { sentinels, ..url.into() };
        let addresses = server.sentinel_addresses().map_err(|error| error.to_string())?;
        Ok(addresses.iter().map(|address| format!("{address} {}", is_tls(address))).collect())
    }

    #[test]
    fn sentinels_use_tls_as_the_server_does_unless_they_say_otherwise() {
        let two = ["one:26379", "10.0.0.2:26379"];
        assert_eq!(addresses("redis://x", &two).unwrap(), ["one:26379 false", "10.0.0.2:26379 false"]);
        assert_eq!(addresses("rediss://x", &two).unwrap(), ["one:26379 true", "10.0.0.2:26379 true"]);
        assert_eq!(addresses("rediss://x", &["redis://one:26379"]).unwrap(), ["one:26379 false"]);
        for (wrong, reason) in [
            (&["one:26379", "rediss://two:26379"][..], "either all or none"),
            (&["redis://:hunter2@one:26379"], "set redis.sentinel_password"),
            (&["http://one:26379"], "is no host:port"),
            (&["one:port"], "is no host:port"),
        ] {
            let error = addresses("redis://x", wrong).unwrap_err();
            assert!(error.contains(reason) && !error.contains("hunter2"), "{error}");
        }
    }
}
