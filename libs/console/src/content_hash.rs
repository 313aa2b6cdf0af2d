//! [`content_hash`]: tells contents apart, not a protection against forgery.

use sha2::{Digest, Sha256};

/// Returns 16 hexadecimal digits of the SHA-256 of a content.
pub(crate) fn content_hash(content: &str) -> String {
    hex::encode(&Sha256::digest(content)[..8])
}
