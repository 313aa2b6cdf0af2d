//! Encryption of stored responses to calls with an `Idempotency-Key`.
//!
//! Responses contain secrets that are shown once, so each is encrypted under a key derived from the caller's own.
//! Callers choose keys that can be guessed ("order-17"), so the master key is mixed in: an attacker with the database
//! alone can neither read a response nor test guesses.

use crate::encryption::{DecryptError, MasterKey, NONCE_BYTES};

/// Maximum length of an idempotency key, in bytes.
pub const KEY_BYTES_MAX: usize = 255;

const ANSWER_PURPOSE: &str = "idempotency.answer";

/// Returns whether a text is a valid key: 1 to 255 visible ASCII characters.
pub fn is_key(text: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic)
}

/// Identifies a call. Its `Debug` output is redacted.
#[derive(Debug, Clone)]
pub struct CallId {
    fingerprint: [u8; 32],
    sealing: MasterKey,
}

impl CallId {
    /// Identifies the call that `credential` makes to `route` under `key`.
    pub fn new(master_key: &MasterKey, credential: &str, route: &str, key: &str) -> Self {
        let parts = [credential, route, key];
        Self {
            fingerprint: master_key.digest("idempotency.fingerprint", &parts),
            sealing: master_key.derive("idempotency.key", &parts),
        }
    }

    /// Returns the stored identifier of the call.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// Encrypts the response. The nonce must never have been used before.
    pub fn seal(&self, nonce: [u8; NONCE_BYTES], answer: &[u8]) -> Vec<u8> {
        self.sealing.seal(ANSWER_PURPOSE, nonce, answer)
    }

    /// Decrypts a stored response.
    pub fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, DecryptError> {
        self.sealing.open(ANSWER_PURPOSE, sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_1_to_255_visible_characters() {
        for right in ["a", "order-17", "8e03978e-40d5-43e8-bc93-6894a57f9324", "!~", &"k".repeat(255)] {
            assert!(is_key(right.as_bytes()), "{right}");
        }
        for wrong in ["", " ", "a b", "a\n", "é", "\u{7f}", &"k".repeat(256)] {
            assert!(!is_key(wrong.as_bytes()), "{wrong:?}");
        }
    }

    #[test]
    fn a_call_is_identified_by_key_caller_and_route() {
        let master_key = |digits: &str| MasterKey::from_hex(&digits.repeat(32)).unwrap();
        let name = |parts: [&str; 3]| CallId::new(&master_key("0f"), parts[0], parts[1], parts[2]);
        let first = name(["key:1", "/api/pages", "a"]);
        let sealed = first.seal([7; NONCE_BYTES], b"answer");
        assert_eq!(name(["key:1", "/api/pages", "a"]).fingerprint(), first.fingerprint());
        assert_eq!(name(["key:1", "/api/pages", "a"]).open(&sealed).unwrap(), b"answer");
        let others = [
            ["key:2", "/api/pages", "a"],
            ["key:1", "/api/forms", "a"],
            ["key:1", "/api/pages", "b"],
            ["key:1", "/api/page", "sa"],
            ["key:1/api/pages", "", "a"],
        ];
        let others = others.map(name).into_iter();
        let elsewhere = CallId::new(&master_key("0e"), "key:1", "/api/pages", "a");
        for other in others.chain([elsewhere]) {
            assert_ne!(other.fingerprint(), first.fingerprint());
            assert!(other.open(&sealed).is_err());
        }
    }
}
