//! Names to addresses, checked in between. The client connects to the very addresses that were checked, so a name
//! that answers differently the next time gains nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use crate::{Allow, Error, Refusal, address};

/// What a resolver answers with, in time.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up a host's addresses.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of `host`.
    fn resolve(&self, host: &str) -> Resolving;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolving {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A resolver as the client calls it.
#[derive(Clone)]
pub(crate) struct Checked {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) allow: Arc<[Allow]>,
    /// For allow-listed names: whatever they lead to is right.
    pub(crate) open: bool,
}

impl Checked {
    /// One bad address among them refuses the name: the next connection could be to that one.
    fn check(&self, addresses: &[IpAddr]) -> Result<(), Error> {
        if addresses.is_empty() {
            return Err(Error::Dns);
        }
        if self.open {
            return Ok(());
        }
        let guarded = addresses
            .iter()
            .filter(|address| !self.allow.iter().any(|entry| entry.covers_address(**address)));
        for address in guarded {
            address::check(*address)
                .map_err(|kind| Error::RefusedTarget { reason: Refusal::Address(kind) })?;
        }
        Ok(())
    }
}

impl reqwest::dns::Resolve for Checked {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let checked = self.clone();
        Box::pin(async move {
            let addresses = checked.resolver.resolve(name.as_str()).await.map_err(|error| {
                tracing::debug!(%error, "a name can't be resolved");
                Error::Dns
            })?;
            checked.check(&addresses)?;
            let sockets = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as reqwest::dns::Addrs)
        })
    }
}
