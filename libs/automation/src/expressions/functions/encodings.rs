//! Functions that encode, escape and hash.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rhai::Dynamic;
use sha2::{Digest, Sha256};

use super::arguments::{Outcome, bounded, text};
use crate::expressions::{budget, limits::ELEMENTS_MAX, values};

/// Characters that a part of a URL can't hold as they are: all but RFC 3986's unreserved ones.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Escapes a text for a part of a URL.
pub(crate) fn for_url(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

pub(super) fn json(arguments: &[&Dynamic]) -> Outcome {
    bounded(values::to_json(arguments[0]).map_err(|error| error.0)?.to_string())
}

pub(super) fn parse_json(arguments: &[&Dynamic]) -> Outcome {
    let text = text(arguments[0])?;
    // A value of a few bytes takes many times as much memory, and time to build.
    budget::count_bytes(8 * text.len());
    let Ok(value) = serde_json::from_str(&text) else { return Ok(Dynamic::UNIT) };
    if elements(&value) > ELEMENTS_MAX {
        return Err(format!("the JSON may have at most {ELEMENTS_MAX} elements"));
    }
    Ok(values::from_json(&value))
}

fn elements(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(list) => list.iter().map(|value| 1 + elements(value)).sum(),
        serde_json::Value::Object(object) => object.values().map(|value| 1 + elements(value)).sum(),
        _ => 0,
    }
}

pub(super) fn url_encode(arguments: &[&Dynamic]) -> Outcome {
    bounded(for_url(&text(arguments[0])?))
}

pub(super) fn html_escape(arguments: &[&Dynamic]) -> Outcome {
    bounded(html_escape::encode_quoted_attribute(&text(arguments[0])?).into_owned())
}

pub(super) fn base64(arguments: &[&Dynamic]) -> Outcome {
    bounded(STANDARD.encode(text(arguments[0])?))
}

pub(super) fn sha256(arguments: &[&Dynamic]) -> Outcome {
    Ok(hex::encode(Sha256::digest(text(arguments[0])?)).into())
}

pub(super) fn hmac_sha256(arguments: &[&Dynamic]) -> Outcome {
    let (key, text) = (text(arguments[0])?, text(arguments[1])?);
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.as_bytes()).map_err(|_| "the key is invalid".to_owned())?;
    mac.update(text.as_bytes());
    Ok(hex::encode(mac.finalize().into_bytes()).into())
}
