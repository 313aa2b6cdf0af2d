//! Outgoing webhooks: what they are told, and how it is signed.
//!
//! The format is Standard Webhooks 1.0: receivers verify with the libraries they have.

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

/// What every signing secret begins with.
pub const SECRET_PREFIX: &str = "whsec_";

/// What a sealed address is sealed for.
pub const URL_PURPOSE: &str = "webhook.url";
/// What a sealed signing secret is sealed for.
pub const SECRET_PURPOSE: &str = "webhook.secret";

/// Everything a webhook can be told, `*` apart.
pub const EVENTS: [&str; 5] =
    ["submission.created", "submission.updated", "submission.deleted", "form.closed", "webhook.ping"];

/// How an event or `*` is written, as a regular expression.
pub const EVENT_PATTERN: &str =
    r"^(\*|submission\.created|submission\.updated|submission\.deleted|form\.closed|webhook\.ping)$";
/// Most bytes of an address.
pub const URL_BYTES_MAX: usize = 2_000;
/// Most characters of the owner's note.
pub const DESCRIPTION_CHARS_MAX: usize = 500;
/// Most events named: all there are, and `*`.
pub const EVENTS_MAX: usize = EVENTS.len() + 1;
/// Most names given anew.
pub const MAPPED_MAX: usize = 200;
/// Most characters of a name that is given anew, and of the new one.
pub const MAPPED_CHARS_MAX: usize = 200;

/// Longest that a secret which was replaced may go on signing, in seconds: a week.
pub const PREVIOUS_SECONDS_MAX: i64 = 7 * 24 * 3_600;

/// The event of a form that takes no more.
pub const FORM_CLOSED: &str = EVENTS[3];

/// The event that its owner asks for, to see whether a webhook works. It is tried once.
pub const PING: &str = EVENTS[4];

/// Whether a webhook that wants `events` is told of `event`; with none named, of `submission.created` alone.
pub fn wants(events: &[String], event: &str) -> bool {
    match events {
        [] => event == EVENTS[0],
        events => events.iter().any(|wanted| wanted == "*" || wanted == event),
    }
}

/// A signing secret from 24 random bytes: `whsec_` and base64, as the standard's libraries take it.
pub fn make_secret(random: &[u8; 24]) -> String {
    format!("{SECRET_PREFIX}{}", STANDARD.encode(random))
}

/// The `webhook-signature` header: `v1,<base64 of HMAC-SHA-256 over "id.timestamp.body">`, one for each
/// secret (two during a rotation). `timestamp` is in Unix seconds.
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

/// `fields` with the names of `mapping` in place of their own. A name taken twice keeps the first.
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
    fn a_signature_is_the_standards_example() {
        // The example of the Standard Webhooks specification's reference libraries.
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
        let signature =
            sign(&[secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn two_live_secrets_give_two_signatures() {
        let secrets = [make_secret(&[1; 24]), make_secret(&[2; 24])];
        let both = sign(&secrets, "id", 1, b"body");
        let first = sign(&secrets[..1], "id", 1, b"body");
        assert_eq!(both.split(' ').count(), 2);
        assert!(both.starts_with(&first));
    }

    #[test]
    fn mapping_renames_and_loses_nothing_else() {
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
