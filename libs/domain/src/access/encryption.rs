//! Encryption of secrets at rest under master keys.
//!
//! XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03), which allows random nonces of 24 bytes. A sealed value is a header with
//! the key's id, the nonce and the ciphertext. Header and purpose are authenticated as associated data, so that an encrypted
//! URL can't be substituted for an encrypted signing secret. Decision: `libs/domain/docs/0001-master-keys.md`.

use std::sync::Arc;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

pub use super::key_id::{HEADER_BYTES, HEADER_MARK, KeyId};

/// Bytes of a nonce, which precedes the ciphertext.
pub const NONCE_BYTES: usize = 24;

/// The encryption keys. The first one seals, each opens what it has sealed. Cheap to clone; the `Debug` output is redacted.
#[derive(Clone)]
pub struct MasterKey {
    first: Key,
    further: Arc<[Key]>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) id: KeyId,
    pub(super) secret: [u8; 32],
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(***)")
    }
}

/// A sealed value can't be decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecryptError {
    /// The key that sealed the value is missing.
    #[error(
        "sealed with master key `{0}`, which is not configured; add it to secrets.master_key as `{0}:` and its 64 hexadecimal digits"
    )]
    MissingKey(KeyId),
    /// The configured key with the id of the value doesn't open it.
    #[error(
        "master key `{0}` does not open it: another key is configured under this id, the value is for another purpose, or its bytes were changed"
    )]
    WrongKey(KeyId),
    /// No configured key opens a value that names none.
    #[error(
        "sealed by a release without key ids, and no configured master key opens it: its key is missing in secrets.master_key, or its bytes were changed"
    )]
    WithoutId,
}

impl crate::Transient for DecryptError {
    fn is_transient(&self) -> bool {
        false
    }
}

impl MasterKey {
    pub(super) fn new(first: Key, further: Vec<Key>) -> Self {
        Self { first, further: further.into() }
    }

    /// Parses one key of 64 hexadecimal digits; `None` if the text is anything else. Its id is `0`.
    pub fn from_hex(text: &str) -> Option<Self> {
        Key::from_hex(KeyId::DEFAULT, text).map(Self::from)
    }

    /// Derives a key from a secret that services share. The secret can't be recovered from it.
    pub fn of_secret(secret: &[u8]) -> Self {
        let mut key = Key { id: KeyId::DEFAULT, secret: [0; 32] };
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) {
            mac.update(b"master key v1");
            key.secret = mac.finalize().into_bytes().into();
        }
        key.into()
    }

    /// Returns the id of the key that seals.
    pub fn sealing_id(&self) -> KeyId {
        self.first.id
    }

    /// Returns the ids of all keys, that of the sealing one first.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.keys().map(|key| key.id)
    }

    /// Returns each key after the first as a master key of its own. They were the first ones before a rotation.
    pub fn further(&self) -> impl Iterator<Item = Self> {
        self.further.iter().cloned().map(Self::from)
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        [&self.first].into_iter().chain(self.further.iter())
    }

    /// Encrypts `text` for one `purpose` with the first key. The nonce must never have been used before (24 random bytes).
    pub fn seal(&self, purpose: &str, nonce: [u8; NONCE_BYTES], text: &[u8]) -> Vec<u8> {
        let header = self.first.id.header();
        let payload = Payload { msg: text, aad: &[&header, purpose.as_bytes()].concat() };
        // Fails only for texts above 256 GiB.
        let sealed = self.first.cipher().encrypt(&XNonce::from(nonce), payload).unwrap_or_default();
        [&header, nonce.as_slice(), &sealed].concat()
    }

    /// Decrypts a text that [`Self::seal`] encrypted for the same `purpose`.
    ///
    /// # Errors
    /// The error names the key that is missing.
    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, DecryptError> {
        let without_id = || self.keys().find_map(|key| key.open(purpose.as_bytes(), sealed));
        let Some(id) = KeyId::of_sealed(sealed) else { return without_id().ok_or(DecryptError::WithoutId) };
        let (header, rest) = sealed.split_at(HEADER_BYTES);
        let key = self.keys().find(|key| key.id == id);
        let opened = key.and_then(|key| key.open(&[header, purpose.as_bytes()].concat(), rest));
        let error = key.map_or(DecryptError::MissingKey(id), |key| DecryptError::WrongKey(key.id));
        // The nonce of a value without an id may begin like a header.
        opened.or_else(without_id).ok_or(error)
    }

    /// Derives a separate key for `purpose` and `parts` from the first key, which can't be recovered from it.
    pub fn derive(&self, purpose: &str, parts: &[&str]) -> Self {
        Key { id: self.first.id, secret: self.digest(purpose, parts) }.into()
    }

    /// Returns a digest of `parts` for `purpose`, which can be computed only with the first key.
    pub fn digest(&self, purpose: &str, parts: &[&str]) -> [u8; 32] {
        self.first.digest(purpose, parts)
    }

    /// Returns the digests by all keys, that by the first one first: a digest that left this installation before a rotation
    /// is among them until the operator removes its key.
    pub fn digests(&self, purpose: &str, parts: &[&str]) -> impl Iterator<Item = [u8; 32]> {
        self.keys().map(move |key| key.digest(purpose, parts))
    }
}

impl From<Key> for MasterKey {
    fn from(key: Key) -> Self {
        Self::new(key, Vec::new())
    }
}

impl Key {
    pub(super) fn from_hex(id: KeyId, text: &str) -> Option<Self> {
        let mut secret = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, at) in secret.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self { id, secret })
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&self.secret.into())
    }

    /// Decrypts a nonce and the ciphertext after it.
    fn open(&self, associated: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = sealed.split_at_checked(NONCE_BYTES)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
        self.cipher().decrypt(&XNonce::from(nonce), Payload { msg: text, aad: associated }).ok()
    }

    fn digest(&self, purpose: &str, parts: &[&str]) -> [u8; 32] {
        // HMAC accepts keys of any length, so this never fails.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return [0; 32] };
        for part in [purpose].iter().chain(parts) {
            // The lengths are part of the input, so that bytes can't be moved from one part to the next.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests;
