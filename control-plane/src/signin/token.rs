//! Random tokens of 256 bits in letters and digits, and the hashes stored instead of them.

use domain::base62;
use service::Rng;
use sha2::{Digest, Sha256};

/// Length of a token.
pub(super) const DIGITS: usize = 43;

/// Returns a new token.
pub(super) fn generate(rng: &Rng) -> String {
    base62::encode(&rng.bytes::<32>(), DIGITS)
}

/// Returns the hash under which a token is stored.
pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
