//! DNS resolution with checked results. The client connects to exactly the addresses that were checked, so a name that
//! resolves differently later (DNS rebinding) gains nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use crate::{Allow, Error, Refusal, address};

/// The future of a resolver's result.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves host names.
pub trait Resolve: Send + Sync + 'static {
    /// Returns all addresses of `host`.
    fn resolve(&self, host: &str) -> Resolving;
}

/// The resolver of the operating system.
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

/// A resolver that rejects non-public addresses.
#[derive(Clone)]
pub(crate) struct CheckedResolver {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) allow: Arc<[Allow]>,
    /// Whether the host is allow-listed; then its addresses are not checked.
    pub(crate) is_allowed: bool,
}

impl CheckedResolver {
    /// Rejects the name if any of its addresses is not public, because a later connection could use that one.
    fn check(&self, addresses: &[IpAddr]) -> Result<(), Error> {
        if addresses.is_empty() {
            return Err(Error::Dns);
        }
        if self.is_allowed {
            return Ok(());
        }
        let checked = addresses
            .iter()
            .filter(|address| !self.allow.iter().any(|entry| entry.matches_address(**address)));
        for address in checked {
            address::check(*address)
                .map_err(|kind| Error::RefusedTarget { reason: Refusal::Address(kind) })?;
        }
        Ok(())
    }
}

impl reqwest::dns::Resolve for CheckedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let addresses = resolver.resolver.resolve(name.as_str()).await.map_err(|error| {
                tracing::debug!(%error, "resolving a name failed");
                Error::Dns
            })?;
            resolver.check(&addresses)?;
            let sockets = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as reqwest::dns::Addrs)
        })
    }
}
