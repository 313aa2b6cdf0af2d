//! Recognizes webhooks whose URL this installation itself serves: its deliveries could cause their own events. Such a URL is
//! refused when it is saved; this check finds those that became ours later, as a domain that was verified since.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use domain::addresses::{Addresses, Target};

/// Time for which the result of a lookup is used.
const MAX_AGE: TimeDelta = TimeDelta::seconds(60);
/// Hosts that are remembered. When there are more, all are looked up again.
const MAX_HOSTS: usize = 10_000;

/// The addresses of this installation, with a cache of hosts that may be verified domains.
pub(crate) struct OwnAddresses {
    addresses: Addresses,
    db: store::Db,
    hosts: Mutex<HashMap<String, Lookup>>,
}

#[derive(Clone, Copy)]
struct Lookup {
    is_verified: bool,
    at: DateTime<Utc>,
}

impl OwnAddresses {
    pub(crate) fn new(addresses: Addresses, db: store::Db) -> Self {
        Self { addresses, db, hosts: Mutex::default() }
    }

    /// Returns whether this installation serves the URL.
    ///
    /// # Errors
    /// Postgres is unavailable.
    pub(crate) async fn serve(&self, url: &str, now: DateTime<Utc>) -> Result<bool, store::Error> {
        let host = match self.addresses.target_of(url) {
            Target::Own => return Ok(true),
            Target::Foreign => return Ok(false),
            Target::OwnIfVerified(host) => host,
        };
        let known = self.hosts().get(&host).copied();
        if let Some(lookup) = known.filter(|lookup| now - lookup.at < MAX_AGE) {
            return Ok(lookup.is_verified);
        }
        let mut conn = store::acquire(&self.db).await?;
        let is_verified = store::domains::is_verified(&mut conn, &host).await?;
        let mut hosts = self.hosts();
        if hosts.len() >= MAX_HOSTS {
            hosts.clear();
        }
        hosts.insert(host, Lookup { is_verified, at: now });
        Ok(is_verified)
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<String, Lookup>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
