//! HTTP triggers: which request headers a run can read, and how requests are authenticated.

use chrono::{DateTime, TimeDelta, Utc};
use domain::webhooks::sign;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::definition::HttpAuthType;
use crate::expressions::values::is_deeper;

/// Header with the secret of a request.
pub const SECRET_HEADER: &str = "x-secret";
/// Maximum size of a request's body.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// Maximum nesting of a request's body. JSON is read back only up to 128 levels, and a run wraps the body in some.
pub const BODY_DEPTH_MAX: usize = 64;
/// Maximum difference between a signature's timestamp and the current time, in either direction.
const SIGNATURE_AGE_MAX: TimeDelta = TimeDelta::minutes(5);
/// Maximum number of headers that a run sees.
const HEADERS_MAX: usize = 50;

/// Headers beside `x-…` that a run sees.
const SEEN: [&str; 5] =
    ["content-type", "user-agent", "webhook-id", "webhook-timestamp", "webhook-signature"];

/// Headers that a run never sees: credentials, what proxies add, and our own.
const HIDDEN: [&str; 17] = [
    SECRET_HEADER,
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-url",
    "x-rewrite-url",
    "x-request-id",
    "x-api-key",
    "x-auth-token",
    "x-csrf-token",
    "x-cache",
    "x-event-time",
    "x-original-forwarded-for",
    "x-original-host",
    "x-azure-clientip",
    "x-appengine-user-ip",
    "x-vercel-forwarded-for",
];

/// Prefixes of names of headers that a run can't read.
const HIDDEN_BEGINNINGS: [&str; 6] =
    ["x-forwarded", "x-envoy-", "x-amzn-", "x-automation-", "x-wr-", "x-edge-"];

/// Returns whether a run can read a request header. It can read neither cookies nor `authorization`.
pub fn is_seen(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if SEEN.contains(&name.as_str()) {
        return true;
    }
    let is_hidden =
        HIDDEN.contains(&name.as_str()) || HIDDEN_BEGINNINGS.iter().any(|start| name.starts_with(start));
    name.starts_with("x-") && !is_hidden
}

/// Returns the headers that a run can read, by lowercase name. The first value of a repeated header wins.
pub fn seen_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    let mut seen = Map::new();
    for (name, value) in headers {
        if is_seen(name) && seen.len() < HEADERS_MAX {
            seen.entry(name.to_ascii_lowercase()).or_insert_with(|| value.into());
        }
    }
    seen
}

/// Returns whether a request's body is nested deeper than [`BODY_DEPTH_MAX`] levels.
pub fn is_too_deep(body: &Value) -> bool {
    is_deeper(body, BODY_DEPTH_MAX)
}

/// Credentials of a request: the secret itself, or the headers of a Standard Webhooks signature.
#[derive(Debug, Clone, Copy, Default)]
pub struct Proof<'a> {
    /// The header `x-secret`.
    pub secret: Option<&'a str>,
    /// The header `webhook-id`.
    pub id: Option<&'a str>,
    /// The header `webhook-timestamp`.
    pub timestamp: Option<&'a str>,
    /// The header `webhook-signature`.
    pub signature: Option<&'a str>,
}

/// Returns whether the credentials match the secret. Compares in constant time. Returns `false` if the secret is empty.
pub fn is_proved(
    kind: HttpAuthType,
    secret: &str,
    proof: Proof<'_>,
    body: &[u8],
    now: DateTime<Utc>,
) -> bool {
    if secret.is_empty() {
        return false;
    }
    match kind {
        HttpAuthType::Secret => proof.secret.is_some_and(|given| equal(given, secret)),
        HttpAuthType::Hmac => is_signed(secret, proof, body, now).unwrap_or(false),
    }
}

fn is_signed(secret: &str, proof: Proof<'_>, body: &[u8], now: DateTime<Utc>) -> Option<bool> {
    let seconds: i64 = proof.timestamp?.parse().ok()?;
    let signed_at = DateTime::from_timestamp(seconds, 0)?;
    if (now - signed_at).abs() > SIGNATURE_AGE_MAX {
        return Some(false);
    }
    let expected = sign(&[signing_secret(secret)], proof.id?, seconds, body);
    // Several signatures may stand in the header, as during a rotation.
    let is_one =
        proof.signature?.split(' ').take(10).fold(false, |found, given| found | equal(given, &expected));
    Some(!expected.is_empty() && is_one)
}

/// Returns the secret as Standard Webhooks writes it. Any text may be a secret; its bytes are then the key.
fn signing_secret(secret: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let prefix = domain::webhooks::SECRET_PREFIX;
    match secret.strip_prefix(prefix) {
        Some(encoded) if STANDARD.decode(encoded).is_ok() => secret.to_owned(),
        _ => format!("{prefix}{}", STANDARD.encode(secret)),
    }
}

/// Compares digests, which have a fixed length. Comparing the texts would leak the length of the secret.
fn equal(given: &str, expected: &str) -> bool {
    Sha256::digest(given).ct_eq(&Sha256::digest(expected)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_nested_too_deep_to_be_read_back_is_recognized() {
        let nested = |levels: usize| -> Value {
            serde_json::from_str(&format!("{}0{}", "{\"a\":".repeat(levels), "}".repeat(levels))).unwrap()
        };
        assert!(!is_too_deep(&nested(64)) && is_too_deep(&nested(65)) && is_too_deep(&nested(126)));
    }

    #[test]
    fn credentials_and_forwarding_headers_never_enter_a_run() {
        let headers = [
            ("Content-Type", "application/json"),
            ("User-Agent", "curl"),
            ("X-GitHub-Event", "push"),
            ("x-a", "1"),
            ("X-A", "2"),
            ("webhook-signature", "v1,x"),
            ("Cookie", "session=1"),
            ("Authorization", "Bearer x"),
            ("X-Forwarded-For", "1.2.3.4"),
            ("X-Forwarded-Proto", "https"),
            ("x-real-ip", "1"),
            ("x-secret", "s"),
            ("forwarded", "for=1"),
            ("x-api-key", "k"),
            ("proxy-authorization", "x"),
            ("Origin", "https://a"),
            ("x-request-id", "r"),
            ("x-automation-depth", "1"),
            ("host", "h"),
            ("X-Original-Forwarded-For", "1.2.3.4"),
            ("X-Original-Host", "h"),
            ("X-Azure-ClientIP", "1.2.3.4"),
            ("X-AppEngine-User-IP", "1.2.3.4"),
            ("X-Vercel-Forwarded-For", "1.2.3.4"),
        ];
        let seen: Vec<String> =
            seen_headers(headers).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            seen,
            [
                "content-type=\"application/json\"",
                "user-agent=\"curl\"",
                "x-github-event=\"push\"",
                "x-a=\"1\"",
                "webhook-signature=\"v1,x\""
            ]
        );
    }

    #[test]
    fn only_the_whole_secret_is_accepted() {
        let now = DateTime::UNIX_EPOCH;
        let check = |given, secret| {
            is_proved(HttpAuthType::Secret, secret, Proof { secret: given, ..Proof::default() }, b"", now)
        };
        assert!(check(Some("secret"), "secret"));
        for given in [None, Some(""), Some("secre"), Some("secret "), Some("SECRET")] {
            assert!(!check(given, "secret"), "{given:?}");
        }
        assert!(!check(Some(""), "") && !check(None, ""));
    }

    #[test]
    fn a_signature_is_of_this_body_and_time() {
        // The example of the Standard Webhooks specification's reference libraries.
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let proof = Proof {
            secret: None,
            id: Some("msg_p5jXN8AQM9LWM0D4loKWxJek"),
            timestamp: Some("1614265330"),
            signature: Some(
                "v1,bm9ldHUjKzFob2VudXRob2VodWUzMjRvdWVvdW9ldQo= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
        };
        let (body, now) = (br#"{"test": 2432232314}"#, DateTime::from_timestamp(1_614_265_400, 0).unwrap());
        let check = |secret, proof, body: &[u8], now| is_proved(HttpAuthType::Hmac, secret, proof, body, now);
        assert!(check(secret, proof, body, now));
        assert!(!check("whsec_AAAA", proof, body, now));
        assert!(!check(secret, proof, b"{}", now));
        assert!(!check(secret, Proof { id: Some("other"), ..proof }, body, now));
        assert!(!check(secret, Proof { timestamp: Some("1614265331"), ..proof }, body, now));
        assert!(!check(secret, proof, body, now + TimeDelta::minutes(6)));
        assert!(!check(secret, proof, body, now - TimeDelta::minutes(10)));
        for missing in [
            Proof { id: None, ..proof },
            Proof { timestamp: None, ..proof },
            Proof { signature: None, ..proof },
            Proof { signature: Some(""), ..proof },
            Proof { timestamp: Some("9223372036854775807"), ..proof },
        ] {
            assert!(!check(secret, missing, body, now));
        }
        // A secret of the user's own is the key itself.
        let signature = sign(&[signing_secret("my own secret")], "id", 1_614_265_400, body);
        let own = Proof {
            id: Some("id"),
            timestamp: Some("1614265400"),
            signature: Some(&signature),
            secret: None,
        };
        assert!(check("my own secret", own, body, now));
    }
}
