//! Encryption of secrets at rest under a master key.
//!
//! XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03), which allows random nonces of 24 bytes. The purpose is authenticated
//! as associated data, so that an encrypted URL can't be substituted for an encrypted signing secret.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// Bytes of a nonce, which precedes the ciphertext.
pub const NONCE_BYTES: usize = 24;

/// The encryption key. Its `Debug` output is redacted.
#[derive(Clone)]
pub struct MasterKey([u8; 32]);

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(***)")
    }
}

/// The ciphertext can't be decrypted: wrong key, wrong purpose, or modified bytes.
#[derive(Debug, thiserror::Error)]
#[error("a sealed secret can't be opened: wrong master key, or the stored bytes were changed")]
pub struct DecryptError;

impl crate::Transient for DecryptError {
    fn is_transient(&self) -> bool {
        false
    }
}

impl MasterKey {
    /// Parses 64 hexadecimal digits; `None` if the text is anything else.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut key = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, at) in key.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(key))
    }

    /// Derives a key from a secret that services share. The secret can't be recovered from it.
    pub fn of_secret(secret: &[u8]) -> Self {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return Self([0; 32]) };
        mac.update(b"master key v1");
        Self(mac.finalize().into_bytes().into())
    }

    /// Encrypts `text` for one `purpose`. The nonce must never have been used before (24 random bytes).
    pub fn seal(&self, purpose: &str, nonce: [u8; NONCE_BYTES], text: &[u8]) -> Vec<u8> {
        let cipher = XChaCha20Poly1305::new(&self.0.into());
        let payload = Payload { msg: text, aad: purpose.as_bytes() };
        // Fails only for texts above 256 GiB.
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload).unwrap_or_default();
        [nonce.as_slice(), &sealed].concat()
    }

    /// Derives a separate key for `purpose` and `parts`. This key can't be recovered from it.
    pub fn derive(&self, purpose: &str, parts: &[&str]) -> Self {
        Self(self.digest(purpose, parts))
    }

    /// Returns a digest of `parts` for `purpose`, which can be computed only with the key.
    pub fn digest(&self, purpose: &str, parts: &[&str]) -> [u8; 32] {
        // HMAC accepts keys of any length, so this never fails.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return [0; 32] };
        for part in [purpose].iter().chain(parts) {
            // The lengths are part of the input, so that bytes can't be moved from one part to the next.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.finalize().into_bytes().into()
    }

    /// Decrypts a text that [`Self::seal`] encrypted for the same `purpose`.
    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>, DecryptError> {
        let (nonce, text) = sealed.split_at_checked(NONCE_BYTES).ok_or(DecryptError)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| DecryptError)?;
        let payload = Payload { msg: text, aad: purpose.as_bytes() };
        let cipher = XChaCha20Poly1305::new(&self.0.into());
        cipher.decrypt(&XNonce::from(nonce), payload).map_err(|_| DecryptError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_purpose_open_unchanged_bytes() {
        let key = MasterKey::from_hex(&"0f".repeat(32)).unwrap();
        let sealed = key.seal("webhook.url", [9; NONCE_BYTES], b"https://x.test/");
        assert_eq!(key.open("webhook.url", &sealed).unwrap(), b"https://x.test/");
        assert!(key.open("webhook.secret", &sealed).is_err());
        assert!(MasterKey::from_hex(&"0e".repeat(32)).unwrap().open("webhook.url", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(key.open("webhook.url", &changed).is_err(), "byte {at}");
        }
        assert!(key.open("webhook.url", &sealed[..10]).is_err());
    }

    #[test]
    fn a_master_key_is_64_hexadecimal_digits() {
        for wrong in ["", "0f", &"zz".repeat(32), &"0f".repeat(33), &"é".repeat(32)] {
            assert!(MasterKey::from_hex(wrong).is_none());
        }
    }
}
