//! Request ids: the client's if it is well-formed, otherwise a new one.

use http::{HeaderMap, HeaderName, HeaderValue};
use service::Rng;

pub(crate) static X_REQUEST_ID: HeaderName = HeaderName::from_static(contract::edge::REQUEST_ID);

/// Returns the id that a request carries, or a new one.
pub(crate) fn request_id(headers: &HeaderMap, rng: &Rng) -> HeaderValue {
    if let Some(id) = headers.get(&X_REQUEST_ID).filter(|_| web::incoming_request_id(headers).is_some()) {
        return id.clone();
    }
    // Hexadecimal digits are a valid header value.
    let mut id = HeaderValue::from_bytes(&new_request_id(rng)).unwrap_or(HeaderValue::from_static(""));
    // The id is not secret, but HTTP/2 would add it to its header table and evict headers that are used again.
    id.set_sensitive(true);
    id
}

/// Returns a new id of 32 hexadecimal digits.
pub(crate) fn new_request_id(rng: &Rng) -> [u8; 32] {
    let mut digits = [0; 32];
    // Sixteen bytes are thirty-two digits.
    let _fits = hex::encode_to_slice(rng.bytes::<16>(), &mut digits);
    digits
}
