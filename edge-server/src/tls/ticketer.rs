//! Session tickets under keys that all edges share, so that a client resumes its session at any edge.
//!
//! rustls' own ticketer makes its keys itself, and other edges don't know them. The format is the same: the key's name, a
//! random nonce, and the ciphertext with the name as associated data.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustls::server::ProducesTickets;
use service::Rng;
use uuid::Uuid;

/// Validity of a ticket. A key is kept for longer, see [`super::ticket_keys`].
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Longer tickets are none of ours: a session without a client certificate needs about 200 bytes.
const MAX_TICKET_BYTES: usize = 4 * 1024;
const NAME_BYTES: usize = 16;

/// Encrypts and decrypts tickets. Without keys it issues none, and every handshake is a full one.
pub(super) struct Ticketer {
    keys: RwLock<Arc<[TicketKey]>>,
    rng: Rng,
}

/// A key and its name.
pub(super) struct TicketKey {
    id: Uuid,
    key: LessSafeKey,
}

impl TicketKey {
    /// `None` if the key does not have 32 bytes.
    pub(super) fn new(id: Uuid, key: &[u8]) -> Option<Self> {
        Some(Self { id, key: LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).ok()?) })
    }
}

impl Ticketer {
    pub(super) fn new(rng: Rng) -> Arc<Self> {
        Arc::new(Self { keys: RwLock::new(Arc::new([])), rng })
    }

    /// Replaces the keys. The first one encrypts.
    pub(super) fn set_keys(&self, keys: Vec<TicketKey>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys.into();
    }

    fn keys(&self) -> Arc<[TicketKey]> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Ticketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticketer(***)")
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        !self.keys().is_empty()
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(LIFETIME.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys();
        let TicketKey { id, key } = keys.first()?;
        // Random, because edges share the key and could not share a counter.
        let nonce: [u8; NONCE_LEN] = self.rng.bytes();
        let mut sealed = session.to_vec();
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(id.as_bytes()),
            &mut sealed,
        )
        .ok()?;
        Some([id.as_bytes().as_slice(), &nonce, &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > MAX_TICKET_BYTES {
            return None;
        }
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let keys = self.keys();
        let TicketKey { key, .. } = keys.iter().find(|key| key.id.as_bytes() == name)?;
        let mut session = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let len = key.open_in_place(nonce, Aad::from(name), &mut session).ok()?.len();
        session.truncate(len);
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticketer(keys: &[u8]) -> Arc<Ticketer> {
        let ticketer = Ticketer::new(Rng::seeded(1));
        let key = |byte: &u8| TicketKey::new(Uuid::from_u128(u128::from(*byte)), &[*byte; 32]).unwrap();
        ticketer.set_keys(keys.iter().map(key).collect());
        ticketer
    }

    #[test]
    fn every_edge_with_the_key_opens_a_ticket_and_no_other() {
        let ticket = ticketer(&[2, 1]).encrypt(b"session").unwrap();
        assert_eq!(ticketer(&[3, 2]).decrypt(&ticket).unwrap(), b"session");
        assert_eq!(ticketer(&[1]).decrypt(&ticket), None, "the first key encrypts");
        let without = ticketer(&[]);
        assert_eq!(
            (without.enabled(), without.encrypt(b"session"), without.decrypt(&ticket)),
            (false, None, None)
        );
        assert!(TicketKey::new(Uuid::nil(), &[1; 31]).is_none());
    }

    #[test]
    fn a_changed_or_shortened_ticket_is_not_opened() {
        let ticketer = ticketer(&[1]);
        let ticket = ticketer.encrypt(b"session").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(ticketer.decrypt(&changed), None, "byte {at}");
            assert_eq!(ticketer.decrypt(&ticket[..at]), None, "{at} bytes");
        }
        assert_eq!(ticketer.decrypt(&[0; MAX_TICKET_BYTES + 1]), None);
        assert_ne!(ticketer.encrypt(b"session"), ticketer.encrypt(b"session"), "each has its own nonce");
    }
}
