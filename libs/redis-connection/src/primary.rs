//! Finds the Redis server that accepts writes.

use std::sync::Arc;
use std::time::Duration;

use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{Client, RedisError, RedisResult, TlsMode};
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;

use crate::error::Error;
use crate::server::{Server, is_tls, tcp_settings};

/// Timeout of one question to the Sentinels. One that hangs is skipped within it.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// The server that accepts writes: that of a URL, or the one that Sentinels name at the moment. Clones share connections to
/// the Sentinels.
#[derive(Clone)]
pub struct Primary(Kind);

#[derive(Clone)]
enum Kind {
    Fixed(Box<Client>),
    /// The lock also makes concurrent callers wait for the connections that the first of them makes.
    Sentinels(Arc<Mutex<SentinelClient>>),
}

impl Primary {
    /// Fails only if a setting is invalid: no connection is made here.
    pub fn new(server: impl Into<Server>) -> Result<Self, Error> {
        let server = server.into();
        match (server.sentinels.is_empty(), server.master_name.is_empty()) {
            (true, true) => Ok(Self(Kind::Fixed(Box::new(fixed(&server)?)))),
            (false, false) => Ok(Self(Kind::Sentinels(Arc::new(Mutex::new(sentinels(&server)?))))),
            (false, true) => Err(Error::Setting(
                "redis.sentinels needs redis.master_name, by which the Sentinels monitor the server"
                    .to_owned(),
            )),
            (true, false) => Err(Error::Setting(
                "redis.master_name needs redis.sentinels, the addresses of the Sentinels".to_owned(),
            )),
        }
    }

    /// Returns a client of the server that is the primary now. If Sentinels name it, it has said itself that it is one: a
    /// Sentinel may not know yet of a failover.
    pub async fn client(&self) -> RedisResult<Client> {
        match &self.0 {
            Kind::Fixed(client) => Ok(Client::clone(client)),
            Kind::Sentinels(sentinels) => {
                let mut sentinels = sentinels.lock().await;
                // Boxed: the type of this future is too deep for the compiler within those of its callers.
                let lookup = Box::pin(sentinels.async_get_client());
                let found = tokio::time::timeout(LOOKUP_TIMEOUT, lookup).await;
                found
                    .unwrap_or_else(|_elapsed| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
            }
        }
    }

    /// Returns whether a connection must be replaced after an error, because a new one may lead elsewhere. The connection
    /// manager only knows how to connect to the same server again.
    pub(crate) fn may_have_moved(&self, error: &RedisError) -> bool {
        let is_lost = error.is_io_error() || error.is_unrecoverable_error();
        refuses_writes(error) || (is_lost && matches!(self.0, Kind::Sentinels(_)))
    }
}

/// Whether the server is a replica, or a primary that lost its replicas and so may have been replaced. Scripts on servers
/// before version 7 have the code within the text.
pub(crate) fn refuses_writes(error: &RedisError) -> bool {
    let is_code = |code: &str| matches!(code, "READONLY" | "MASTERDOWN" | "NOREPLICAS");
    error.code().is_some_and(is_code) || error.detail().is_some_and(|text| text.contains("-READONLY "))
}

fn fixed(server: &Server) -> Result<Client, Error> {
    let info = server.connection_info()?;
    Ok(match (server.certificates(is_tls(info.addr()))?, is_tls(info.addr())) {
        (Some(certificates), true) => Client::build_with_tls(info, certificates)?,
        _ => Client::open(info)?,
    })
}

fn sentinels(server: &Server) -> Result<SentinelClient, Error> {
    let info = server.connection_info()?;
    let addresses = server.sentinel_addresses()?;
    let sentinels_use_tls = addresses.iter().any(is_tls);
    let certificates = server.certificates(is_tls(info.addr()) || sentinels_use_tls)?;
    let mut builder =
        SentinelClientBuilder::new(addresses, server.master_name.as_str(), SentinelServerType::Master)?
            .set_client_to_redis_db(info.redis_settings().db())
            .set_client_to_redis_tcp_settings(tcp_settings())
            .set_client_to_sentinel_tcp_settings(tcp_settings());
    if let Some(username) = info.redis_settings().username() {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = info.redis_settings().password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if is_tls(info.addr()) {
        builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
    }
    if !server.sentinel_password.expose_secret().is_empty() {
        builder = builder.set_client_to_sentinel_password(server.sentinel_password.expose_secret());
    }
    if let Some(certificates) = certificates {
        if sentinels_use_tls {
            builder = builder.set_client_to_sentinel_certificates(certificates.clone());
        }
        builder = builder.set_client_to_redis_certificates(certificates);
    }
    Ok(builder.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_and_the_name_of_the_server_belong_together() {
        let server = |sentinels: &[&str], name: &str| Server {
            sentinels: sentinels.iter().map(ToString::to_string).collect(),
            master_name: name.to_owned(),
            ..Server::from("redis://127.0.0.1:1")
        };
        let error = |server| Primary::new(server).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error(server(&["one:26379"], "")).contains("needs redis.master_name"));
        assert!(error(server(&[], "webruntime")).contains("needs redis.sentinels"));
        assert_eq!(error(server(&["one:26379"], "webruntime")), "");
        assert_eq!(error(server(&[], "")), "");
    }
}
