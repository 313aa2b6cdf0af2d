//! Signatures and signing secrets of deliveries, in the format of Standard Webhooks 1.0.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Prefix of signing secrets.
pub const SECRET_PREFIX: &str = "whsec_";
/// Maximum time in seconds for which a replaced secret may still sign: one week.
pub const PREVIOUS_SECONDS_MAX: i64 = 7 * 24 * 3_600;

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

#[cfg(test)]
mod tests {
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
}
