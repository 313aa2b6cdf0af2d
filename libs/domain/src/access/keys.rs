//! API keys: generation, parsing and fingerprints.
//!
//! A key is `st_trial_` or `st_live_`, 30 random base-62 digits, and 6 digits of their CRC-32, so that a mistyped key
//! is rejected without a database query. Only an HMAC of the key is stored.

use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::field_error::check_length;
use crate::{FieldError, base62};

/// Maximum length of a key's label, in characters.
pub const LABEL_CHARS_MAX: usize = 80;
/// Maximum number of an account's keys that are not revoked.
pub const KEYS_MAX: i64 = 1_000;
/// Maximum lifetime of a key that expires.
pub const LIFETIME_MAX: TimeDelta = TimeDelta::days(90);

const RANDOM_DIGITS: usize = 30;
const CHECK_DIGITS: usize = 6;
/// Number of random digits in [`shown_prefix`].
const SHOWN_DIGITS: usize = 4;

/// The kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Issued with an unclaimed account.
    Trial,
    /// Created by an account's owner.
    Live,
}

impl KeyKind {
    /// Returns the prefix of every key of this kind.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Trial => "st_trial_",
            Self::Live => "st_live_",
        }
    }

    /// Returns the kind of the key with this [`shown_prefix`].
    pub fn of_prefix(shown: &str) -> Self {
        if shown.starts_with(Self::Trial.prefix()) { Self::Trial } else { Self::Live }
    }
}

/// Creates a key from 32 random bytes. The caller receives the only plaintext.
pub fn make(kind: KeyKind, random: &[u8; 32]) -> String {
    let digits = base62::encode(random, RANDOM_DIGITS);
    let check = checksum(kind, &digits);
    format!("{}{digits}{check}", kind.prefix())
}

/// Returns the kind of a well-formed key; `None` for a text that can't be a key.
pub fn kind_of(key: &str) -> Option<KeyKind> {
    let kind = [KeyKind::Trial, KeyKind::Live].into_iter().find(|kind| key.starts_with(kind.prefix()))?;
    let rest = &key[kind.prefix().len()..];
    let digits = rest.get(..RANDOM_DIGITS)?;
    let check = rest.get(RANDOM_DIGITS..)?;
    (rest.is_ascii() && checksum(kind, digits) == check).then_some(kind)
}

/// The server's secret part of every fingerprint, with the HMAC key schedule computed once.
#[derive(Clone)]
pub struct Pepper(Hmac<Sha256>);

impl Pepper {
    /// Creates the pepper from the configured secret; `None` if it is shorter than 16 bytes.
    pub fn new(secret: &[u8]) -> Option<Self> {
        Hmac::new_from_slice(secret).ok().filter(|_| secret.len() >= 16).map(Self)
    }

    /// Returns the fingerprint that is stored instead of the key: HMAC-SHA-256 under the pepper.
    pub fn fingerprint(&self, key: &str) -> [u8; 32] {
        self.0.clone().chain_update(key.as_bytes()).finalize().into_bytes().into()
    }
}

/// Returns the part of a key that lists may show.
pub fn shown_prefix(kind: KeyKind, key: &str) -> String {
    key.chars().take(kind.prefix().len() + SHOWN_DIGITS).collect()
}

/// Validates a new key's label and expiry.
pub fn check(label: &str, expires_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_length(&mut errors, "label", label.trim(), 1, LABEL_CHARS_MAX);
    if expires_at.is_some_and(|at| at <= now || at - now > LIFETIME_MAX) {
        let message = "expiresAt must be in the future and at most 90 days ahead";
        errors.push(FieldError::new("expiresAt", "range", message));
    }
    errors
}

fn checksum(kind: KeyKind, digits: &str) -> String {
    let mut crc = crc32fast::Hasher::new();
    crc.update(kind.prefix().as_bytes());
    crc.update(digits.as_bytes());
    base62::encode(&crc.finalize().to_be_bytes(), CHECK_DIGITS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_new_key_is_well_formed_and_a_changed_one_is_not(random: [u8; 32], at in 0usize..36, to in "[0-9A-Za-z]") {
            let key = make(KeyKind::Live, &random);
            prop_assert_eq!(key.len(), "st_live_".len() + 36);
            prop_assert_eq!(kind_of(&key), Some(KeyKind::Live));
            let at = "st_live_".len() + at;
            let mut changed = key.clone();
            changed.replace_range(at..=at, &to);
            prop_assert_eq!(kind_of(&changed).is_some(), changed == key);
        }
    }

    #[test]
    fn a_trial_key_is_not_a_live_key_with_another_prefix() {
        let trial = make(KeyKind::Trial, &[7; 32]);
        assert_eq!(kind_of(&trial), Some(KeyKind::Trial));
        assert_eq!(kind_of(&trial.replace("st_trial_", "st_live_")), None);
        for garbage in ["", "st_live_", "sk_live_abc", "st_live_ééééééééééééééééééééééééééééééééééé"]
        {
            assert_eq!(kind_of(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn a_key_expires_within_ninety_days_or_never() {
        let now = DateTime::UNIX_EPOCH;
        let codes = |expires_at| check("CI", expires_at, now).iter().map(|c| c.code).collect::<Vec<_>>();
        assert!(codes(None).is_empty());
        assert!(codes(Some(now + LIFETIME_MAX)).is_empty());
        assert!(codes(Some(now + TimeDelta::milliseconds(1))).is_empty());
        assert_eq!(codes(Some(now)), ["range"]);
        assert_eq!(codes(Some(now + LIFETIME_MAX + TimeDelta::milliseconds(1))), ["range"]);
        assert_eq!(check(" ", None, now)[0].code, "required");
        assert_eq!(check(&"x".repeat(81), None, now)[0].code, "too_long");
        assert_eq!(check(&"x".repeat(80), None, now), vec![]);
    }

    #[test]
    fn a_fingerprint_depends_on_key_and_pepper() {
        let fingerprint = |pepper: &str, key| Pepper::new(pepper.as_bytes()).unwrap().fingerprint(key);
        let print = fingerprint("a pepper of ours", "key");
        assert_ne!(print, fingerprint("the salt of ours", "key"));
        assert_ne!(print, fingerprint("a pepper of ours", "kez"));
        assert_eq!(print, fingerprint("a pepper of ours", "key"));
        assert!(Pepper::new(b"fifteen letters").is_none());
    }
}
