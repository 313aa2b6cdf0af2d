//! The rotation of the ticket keys in Postgres. The edge that finds the newest key too old inserts another one.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::certificates::TICKET_KEY_PURPOSE;
use domain::encryption::MasterKey;
use service::{Clock, Rng, Rounds, Shutdown};
use store::tls_certificates::{self as certificates, TicketKey as StoredKey};

use super::ticketer::{TicketKey, Ticketer};
use crate::state::EdgeState;

/// Age from which the newest key is replaced. Three are kept, so a ticket can be opened for at least a day.
const ROTATE_AFTER: TimeDelta = TimeDelta::hours(12);
/// Interval at which the keys are read.
pub(crate) const INTERVAL: Duration = Duration::from_secs(15);
/// Age from which a key encrypts: all edges have read it by then.
const ENCRYPT_AFTER: TimeDelta = TimeDelta::seconds(30);

/// Reads the ticket keys and rotates them until shutdown. Without TLS it does nothing.
pub(crate) async fn rotate_ticket_keys(
    state: EdgeState,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let Some(tls) = &state.tls else {
        shutdown.requested().await;
        return Ok(());
    };
    let keys =
        KeyRotation { db: state.db.pool(), tls_key: &tls.master_key, clock: &state.clock, rng: &state.rng };
    let ticks = service::ticks(INTERVAL);
    service::every(&rounds, ticks, &shutdown, || keys.update(&tls.ticketer)).await
}

struct KeyRotation<'a> {
    db: &'a store::Db,
    tls_key: &'a MasterKey,
    clock: &'a Clock,
    rng: &'a Rng,
}

impl KeyRotation<'_> {
    /// Gives the current keys to the ticketer.
    async fn update(&self, ticketer: &Ticketer) -> Result<(), store::Error> {
        let now = self.clock.now();
        let mut conn = store::acquire(self.db).await?;
        let mut stored = certificates::list_ticket_keys(&mut conn).await?;
        if stored.first().is_none_or(|newest| newest.created_at <= now - ROTATE_AFTER) {
            drop(conn);
            self.rotate(now).await?;
            stored = certificates::list_ticket_keys(&mut *store::acquire(self.db).await?).await?;
        }
        let created: Vec<_> = stored.iter().map(|key| key.created_at).collect();
        let first = encrypting(&created, now);
        let mut keys: Vec<TicketKey> = stored.iter().filter_map(|key| self.open(key)).collect();
        if keys.len() == stored.len() && !keys.is_empty() {
            keys.swap(0, first);
        }
        ticketer.set_keys(keys);
        Ok(())
    }

    async fn rotate(&self, now: DateTime<Utc>) -> Result<(), store::Error> {
        let sealed_key = self.tls_key.seal(TICKET_KEY_PURPOSE, self.rng.bytes(), &self.rng.bytes::<32>());
        let key = StoredKey { id: self.rng.uuid_v7(now), sealed_key, created_at: now };
        let mut tx = store::begin(self.db).await?;
        certificates::rotate_ticket_keys(&mut tx, &key, now - ROTATE_AFTER).await?;
        store::commit(tx).await
    }

    /// Decrypts a key. One that can't be decrypted is left out, so that sessions still resume with the others.
    fn open(&self, stored: &StoredKey) -> Option<TicketKey> {
        let opened = self.tls_key.open(TICKET_KEY_PURPOSE, &stored.sealed_key);
        let key = opened.as_ref().ok().and_then(|key| TicketKey::new(stored.id, key));
        if key.is_none() {
            let error =
                opened.err().map_or_else(|| "it has a wrong length".to_owned(), |error| error.to_string());
            tracing::error!(id = %stored.id, error, "a ticket key can't be used; is secrets.master_key the same at all edges?");
        }
        key
    }
}

/// Returns the position of the key that encrypts: the newest that all edges have read, else the oldest. `created` has the
/// newest first.
fn encrypting(created: &[DateTime<Utc>], now: DateTime<Utc>) -> usize {
    let is_shared = |created: &DateTime<Utc>| *created <= now - ENCRYPT_AFTER;
    created.iter().position(is_shared).unwrap_or(created.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_key_encrypts_once_all_edges_have_read_it() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        let ages = |ages: &[i64]| {
            let created: Vec<_> = ages.iter().map(|age| now - TimeDelta::seconds(*age)).collect();
            encrypting(&created, now)
        };
        assert_eq!([ages(&[5]), ages(&[5, 43_205]), ages(&[30, 43_230]), ages(&[5, 10])], [0, 1, 0, 1]);
        assert_eq!(ages(&[]), 0);
    }
}
