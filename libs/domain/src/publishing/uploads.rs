//! Signed upload and download URLs. A URL allows exactly one announced file, until it expires.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

use crate::FieldError;
use crate::field_error::check_length;

/// Maximum length of a file name, in characters.
pub const FILENAME_CHARS_MAX: usize = 200;

/// The signed parameters of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Id of the upload.
    pub id: Uuid,
    /// Exact size of the file.
    pub size_bytes: i64,
    /// Expiry in seconds since 1970.
    pub expires_at: i64,
}

/// Signs tickets. Its `Debug` output is redacted.
#[derive(Clone)]
pub struct Signer {
    key: [u8; 32],
    /// First path segment of the URLs.
    folder: &'static str,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer(***)")
    }
}

/// Why a ticket is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The signature is invalid.
    #[error("the upload URL was modified")]
    Forged,
    /// The ticket has expired.
    #[error("the upload URL has expired; request a new one")]
    Expired,
}

impl Signer {
    /// Creates the signer of upload URLs. Its key is derived from the secret, which can't be recovered from it.
    pub fn new(secret: &[u8]) -> Self {
        Self { key: digest(secret, b"uploads v1"), folder: "uploads" }
    }

    /// Creates the signer of download URLs. Neither signer accepts the other's tickets.
    pub fn for_downloads(secret: &[u8]) -> Self {
        Self { key: digest(secret, b"downloads v1"), folder: "downloads" }
    }

    /// Returns the path and query of a ticket.
    pub fn address(&self, ticket: &Ticket) -> String {
        let Ticket { id, size_bytes, expires_at } = ticket;
        let folder = self.folder;
        let signature = URL_SAFE_NO_PAD.encode(self.signature(ticket));
        format!("/{folder}/{id}?expires={expires_at}&size={size_bytes}&signature={signature}")
    }

    /// Verifies the ticket in a request for `id` with this query.
    pub fn read(&self, id: Uuid, query: &str, now: DateTime<Utc>) -> Result<Ticket, Refused> {
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
            // A proxy might read another one of two equal parameters than we do.
            values.next().filter(|_| values.next().is_none()).ok_or(Refused::Forged)
        };
        let number = |name: &str| value(name)?.parse().map_err(|_| Refused::Forged);
        let ticket = Ticket { id, size_bytes: number("size")?, expires_at: number("expires")? };
        let shown = URL_SAFE_NO_PAD.decode(value("signature")?).map_err(|_| Refused::Forged)?;
        let mut mac = hmac(&self.key);
        mac.update(&text(&ticket));
        mac.verify_slice(&shown).map_err(|_| Refused::Forged)?;
        if ticket.expires_at <= now.timestamp() { Err(Refused::Expired) } else { Ok(ticket) }
    }

    fn signature(&self, ticket: &Ticket) -> [u8; 32] {
        digest(&self.key, &text(ticket))
    }
}

/// Returns the signed bytes. Every part has a fixed length.
fn text(ticket: &Ticket) -> Vec<u8> {
    let Ticket { id, size_bytes, expires_at } = ticket;
    [id.as_bytes().as_slice(), &size_bytes.to_be_bytes(), &expires_at.to_be_bytes()].concat()
}

fn digest(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = hmac(key);
    mac.update(text);
    mac.finalize().into_bytes().into()
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    // HMAC accepts keys of any length, so the fallback is never used; an `expect` would need a reason too.
    Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| Hmac::<Sha256>::new(&Default::default()))
}

/// Regular expression of a file name: it has at least one character besides dots.
pub const FILENAME_PATTERN: &str =
    r"^[^/\\\x00-\x1f\x7f-\x9f]*[^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*$";

/// Validates a file name, which becomes the last segment of a URL and the name that browsers save.
pub fn check_filename(filename: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_length(&mut errors, "filename", filename, 1, FILENAME_CHARS_MAX);
    let is_odd = |c: char| c.is_control() || c == '/' || c == '\\';
    if filename.chars().any(is_odd) || filename.chars().all(|c| c == '.') {
        let rule =
            "filename is a name without folders, slashes and control characters, and not of dots alone";
        errors.push(FieldError::new("filename", "characters", rule));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: Uuid = Uuid::from_u128(7);

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_000, 0).unwrap()
    }

    fn given() -> (Signer, String) {
        let signer = Signer::new(b"a secret that two services share");
        let address = signer.address(&Ticket { id: ID, size_bytes: 10, expires_at: 1_060 });
        let query = address.split_once('?').unwrap().1.to_owned();
        (signer, query)
    }

    #[test]
    fn an_unchanged_url_is_accepted() {
        let (signer, query) = given();
        assert_eq!(signer.read(ID, &query, now()).unwrap().size_bytes, 10);
    }

    #[test]
    fn another_upload_size_or_time_is_forged() {
        let (signer, query) = given();
        assert_eq!(signer.read(Uuid::from_u128(8), &query, now()), Err(Refused::Forged));
        for (was, is) in
            [("size=10", "size=11"), ("expires=1060", "expires=9999"), ("signature=", "signature=A")]
        {
            assert_eq!(signer.read(ID, &query.replace(was, is), now()), Err(Refused::Forged), "{is}");
        }
        for broken in ["", "expires=1060&size=10", &format!("{query}&size=10"), &query.replace("10", "x")] {
            assert_eq!(signer.read(ID, broken, now()), Err(Refused::Forged), "{broken}");
        }
    }

    #[test]
    fn another_secret_gives_another_signature() {
        let (_, query) = given();
        assert_eq!(Signer::new(b"another").read(ID, &query, now()), Err(Refused::Forged));
        let for_downloads = Signer::for_downloads(b"a secret that two services share");
        assert_eq!(for_downloads.read(ID, &query, now()), Err(Refused::Forged));
    }

    #[test]
    fn a_url_expires() {
        let (signer, query) = given();
        let at = |second: i64| DateTime::from_timestamp(second, 0).unwrap();
        assert!(signer.read(ID, &query, at(1_059)).is_ok());
        assert_eq!(signer.read(ID, &query, at(1_060)), Err(Refused::Expired));
    }

    #[test]
    fn a_file_name_contains_no_path() {
        for wrong in ["", "a/b", "..", "a\\b", "a\nb", &"x".repeat(201)] {
            assert!(!check_filename(wrong).is_empty(), "{wrong}");
        }
        for right in ["a.png", "Größe (1).jpg", "..a", " "] {
            assert_eq!(check_filename(right), vec![], "{right}");
        }
    }
}
