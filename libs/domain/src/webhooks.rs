//! Webhooks: events, signatures and limits.
//!
//! The format is Standard Webhooks 1.0, so receivers verify signatures with existing libraries.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value};
use sha2::Sha256;

pub mod health;
mod settings;
mod template;
pub mod verdict;

pub use settings::{WebhookSettings, check, check_chat};
pub use template::Template;

/// Prefix of signing secrets.
pub const SECRET_PREFIX: &str = "whsec_";

/// Encryption purpose of URLs.
pub const URL_PURPOSE: &str = "webhook.url";
/// Encryption purpose of signing secrets.
pub const SECRET_PURPOSE: &str = "webhook.secret";

/// All events, without `*`.
pub const EVENTS: [&str; 5] =
    ["submission.created", "submission.updated", "submission.deleted", "form.closed", "webhook.ping"];

/// Regular expression of an event or `*`.
pub const EVENT_PATTERN: &str =
    r"^(\*|submission\.created|submission\.updated|submission\.deleted|form\.closed|webhook\.ping)$";
/// Maximum length of a URL, in bytes.
pub const URL_BYTES_MAX: usize = 2_000;
/// Maximum length of a description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 500;
/// Maximum number of events of one webhook: all of them, and `*`.
pub const EVENTS_MAX: usize = EVENTS.len() + 1;
/// Maximum number of names in `fieldMapping`.
pub const MAPPED_MAX: usize = 200;
/// Maximum length of a name in `fieldMapping`, old or new, in characters.
pub const MAPPED_CHARS_MAX: usize = 200;

/// Maximum time in seconds for which a replaced secret may still sign: one week.
pub const PREVIOUS_SECONDS_MAX: i64 = 7 * 24 * 3_600;

/// The event of a form that has closed.
pub const FORM_CLOSED: &str = EVENTS[3];

/// The event of a test requested by the owner. It is tried once.
pub const PING: &str = EVENTS[4];

/// Returns whether a webhook with these `events` receives `event`; without any it receives `submission.created`.
pub fn wants(events: &[String], event: &str) -> bool {
    match events {
        [] => event == EVENTS[0],
        events => events.iter().any(|wanted| wanted == "*" || wanted == event),
    }
}

/// Creates a signing secret from 24 random bytes: `whsec_` and base64, as the standard's libraries expect.
pub fn make_secret(random: &[u8; 24]) -> String {
    format!("{SECRET_PREFIX}{}", STANDARD.encode(random))
}

/// Returns the `webhook-signature` header: `v1,<base64 of HMAC-SHA-256 over "id.timestamp.body">` for each secret
/// (two during a rotation). `timestamp` is in Unix seconds.
pub fn sign(secrets: &[String], id: &str, timestamp: i64, body: &[u8]) -> String {
    let one = |secret: &String| {
        let bytes = STANDARD.decode(secret.strip_prefix(SECRET_PREFIX)?).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&bytes).ok()?;
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    };
    secrets.iter().filter_map(one).collect::<Vec<_>>().join(" ")
}

/// Renames `fields` by `mapping`. If two names collide, the first one wins.
pub fn map_fields(fields: &Map<String, Value>, mapping: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut mapped = Map::new();
    for (name, value) in fields {
        let target = mapping.and_then(|mapping| mapping.get(name)).and_then(Value::as_str).unwrap_or(name);
        mapped.entry(target).or_insert_with(|| value.clone());
    }
    mapped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signature_matches_the_standards_example() {
        // The example of the Standard Webhooks specification's reference libraries.
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
        let signature =
            sign(&[secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn two_active_secrets_give_two_signatures() {
        let secrets = [make_secret(&[1; 24]), make_secret(&[2; 24])];
        let both = sign(&secrets, "id", 1, b"body");
        let first = sign(&secrets[..1], "id", 1, b"body");
        assert_eq!(both.split(' ').count(), 2);
        assert!(both.starts_with(&first));
    }

    #[test]
    fn mapping_renames_and_loses_no_other_field() {
        let fields = json!({"email": "a@b.co", "name": "A"});
        let mapping = json!({"email": "contact"});
        let mapped = map_fields(fields.as_object().unwrap(), mapping.as_object());
        assert_eq!(Value::Object(mapped), json!({"contact": "a@b.co", "name": "A"}));
    }

    #[test]
    fn no_events_means_new_submissions() {
        assert!(wants(&[], "submission.created"));
        assert!(!wants(&[], "submission.deleted"));
        assert!(wants(&["*".to_owned()], "form.closed"));
    }
}
