//! The HTTP request of a delivery attempt: URL, signed headers and body.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::events::AUTOMATION_MESSAGE;
use super::field_mapping::FieldNames;
use super::signature::sign;
use super::template::Template;
use crate::{chat, depth, in_order};

/// Encryption purpose of URLs.
pub const URL_PURPOSE: &str = "webhook.url";
/// Encryption purpose of signing secrets.
pub const SECRET_PURPOSE: &str = "webhook.secret";

/// A delivery with its webhook's decrypted settings.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// Stable over all attempts, so that receivers can detect duplicates.
    pub id: &'a str,
    pub template: Template,
    /// The URL that the owner entered.
    pub url: String,
    /// Signing secrets, newest first.
    pub secrets: &'a [String],
    /// The event's body, before `fieldMapping`.
    pub event: &'a Value,
    /// Names and order of the event's fields.
    pub names: FieldNames<'a>,
    pub telegram_chat_id: Option<&'a str>,
    /// See [`crate::depth`].
    pub depth: i16,
}

/// A POST request.
#[derive(Debug)]
pub struct Request {
    pub url: String,
    pub headers: [(&'static str, String); 5],
    pub body: Vec<u8>,
}

/// The beginning of a digest of a request: its URL, headers and body.
pub type RequestDigest = [u8; 16];

impl Request {
    /// Returns the digest. Another URL, signature, header or body has another one.
    pub fn digest(&self) -> RequestDigest {
        let mut hasher = Sha256::new();
        let headers = self.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
        for part in [self.url.as_bytes()].into_iter().chain(headers).chain([self.body.as_slice()]) {
            // The length keeps parts apart that would read the same together.
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
        let whole: [u8; 32] = hasher.finalize().into();
        whole.first_chunk().copied().unwrap_or_default()
    }
}

/// The request can't be created. The message contains neither the URL nor a secret.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The body can't be serialized.
    #[error("the event can't be serialized")]
    Body(#[from] serde_json::Error),
    /// No signing secret is valid.
    #[error("the webhook has no valid signing secret")]
    Secret,
}

/// Returns the request of an attempt at `timestamp`, in Unix seconds, which the signature covers.
pub fn signed_request(delivery: Delivery<'_>, timestamp: i64) -> Result<Request, RequestError> {
    let body = body(&delivery)?;
    let signature = sign(delivery.secrets, delivery.id, timestamp, &body);
    if signature.is_empty() {
        return Err(RequestError::Secret);
    }
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("webhook-id", delivery.id.to_owned()),
        ("webhook-timestamp", timestamp.to_string()),
        ("webhook-signature", signature),
        (depth::HEADER, delivery.depth.to_string()),
    ];
    Ok(Request { url: chat::request_url(delivery.template, delivery.url), headers, body })
}

/// Returns a chat message, or the event itself with mapped fields.
fn body(delivery: &Delivery<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let Delivery { template, event, names, telegram_chat_id, .. } = delivery;
    if let Some(message) = chat::body(*template, event, *names, *telegram_chat_id) {
        return serde_json::to_vec(&message);
    }
    let mut event = in_documented_order((*event).clone());
    let named = if event["type"] == AUTOMATION_MESSAGE { "/data/payload" } else { "/data/fields" };
    if let Some(Value::Object(fields)) = event.pointer_mut(named) {
        *fields = names.apply(fields);
    }
    serde_json::to_vec(&event)
}

/// Returns the event with its members in the order of the documentation.
fn in_documented_order(mut event: Value) -> Value {
    const EVENT: [&str; 3] = ["type", "timestamp", "data"];
    const DATA: [&str; 8] =
        ["formId", "formName", "submissionId", "externalId", "submittedAt", "reason", "message", "fields"];
    if let Some(Value::Object(data)) = event.get_mut("data") {
        *data = in_order(std::mem::take(data), DATA);
    }
    match event {
        Value::Object(members) => Value::Object(in_order(members, EVENT)),
        other => other,
    }
}
