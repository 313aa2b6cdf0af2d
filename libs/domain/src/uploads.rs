//! Addresses that take one upload: signed, so that whoever was given one may send what was announced, and no more.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

use crate::FieldError;
use crate::field_error::check_length;

/// Most characters of a file's name.
pub const FILENAME_CHARS_MAX: usize = 200;

/// What an address was signed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The upload.
    pub id: Uuid,
    /// How many bytes it takes, exactly.
    pub size_bytes: i64,
    /// Until when, in seconds since 1970.
    pub expires_at: i64,
}

/// Signs tickets. Its `Debug` shows nothing.
#[derive(Clone)]
pub struct Signer {
    key: [u8; 32],
    /// The folder of its addresses.
    folder: &'static str,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer(***)")
    }
}

/// Why a ticket is no good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Nobody here has signed this.
    #[error("the upload address is not as it was given out")]
    Forged,
    /// Its time is over.
    #[error("the upload address has expired; ask for a new one")]
    Expired,
}

impl Signer {
    /// A signer whose key is derived from a secret; nobody gets from the one to the other.
    pub fn new(secret: &[u8]) -> Self {
        Self { key: digest(secret, b"uploads v1"), folder: "uploads" }
    }

    /// One for addresses at which a file can be fetched. A ticket for the one is none for the other.
    pub fn of_downloads(secret: &[u8]) -> Self {
        Self { key: digest(secret, b"downloads v1"), folder: "downloads" }
    }

    /// The path and query of a ticket.
    pub fn address(&self, ticket: &Ticket) -> String {
        let Ticket { id, size_bytes, expires_at } = ticket;
        let folder = self.folder;
        let signature = URL_SAFE_NO_PAD.encode(self.signature(ticket));
        format!("/{folder}/{id}?expires={expires_at}&size={size_bytes}&signature={signature}")
    }

    /// The ticket in a request for `id` with this query.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn read(&self, id: Uuid, query: &str, now: DateTime<Utc>) -> Result<Ticket, Refused> {
        let value = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
            // Twice the same name could mean one thing here and another before us.
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

/// What is signed: every part of a length of its own.
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
    // It takes keys of any length; a shorter way to say so than an `expect` would need a reason too.
    Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| Hmac::<Sha256>::new(&Default::default()))
}

/// How a file's name is written, as a regular expression: something in it is no dot.
pub const FILENAME_PATTERN: &str =
    r"^[^/\\\x00-\x1f\x7f-\x9f]*[^./\\\x00-\x1f\x7f-\x9f][^/\\\x00-\x1f\x7f-\x9f]*$";

/// What is wrong with a file's name: it becomes the last part of an address, and of what browsers save.
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
    fn an_address_as_it_was_given_out_is_read_back() {
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
    fn another_secret_signs_otherwise() {
        let (_, query) = given();
        assert_eq!(Signer::new(b"another").read(ID, &query, now()), Err(Refused::Forged));
        let of_downloads = Signer::of_downloads(b"a secret that two services share");
        assert_eq!(of_downloads.read(ID, &query, now()), Err(Refused::Forged));
    }

    #[test]
    fn an_address_ends_at_its_time() {
        let (signer, query) = given();
        let at = |second: i64| DateTime::from_timestamp(second, 0).unwrap();
        assert!(signer.read(ID, &query, at(1_059)).is_ok());
        assert_eq!(signer.read(ID, &query, at(1_060)), Err(Refused::Expired));
    }

    #[test]
    fn a_file_name_leads_into_no_folder() {
        for wrong in ["", "a/b", "..", "a\\b", "a\nb", &"x".repeat(201)] {
            assert!(!check_filename(wrong).is_empty(), "{wrong}");
        }
        for right in ["a.png", "Größe (1).jpg", "..a", " "] {
            assert_eq!(check_filename(right), vec![], "{right}");
        }
    }
}
