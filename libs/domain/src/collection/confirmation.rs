//! The token with which a visitor confirms a submission that looks like a robot's.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::encryption::MasterKey;
use crate::honeypot::reasons;

/// How long a token is valid. Used ones are remembered for longer.
pub const TTL: TimeDelta = TimeDelta::hours(1);

/// Bytes of a token's signature.
const SIGNATURE_BYTES: usize = 16;

/// The spam reasons that a click answers.
pub const ANSWERED: [&str; 3] = [reasons::HONEYPOT, reasons::TOO_FAST, reasons::TOKEN];

/// Returns whether one click answers the suspicion. It answers neither a rate nor a missing proof of work.
pub fn is_enough(spam_reasons: &[String]) -> bool {
    !spam_reasons.is_empty() && spam_reasons.iter().all(|reason| ANSWERED.contains(&reason.as_str()))
}

/// Creates the token that confirms this submission of this form until `expires_at`.
pub fn token(key: &MasterKey, form_id: Uuid, submission_id: Uuid, expires_at: DateTime<Utc>) -> String {
    let second = expires_at.timestamp();
    let signature = signature(key, form_id, submission_id, second);
    URL_SAFE_NO_PAD.encode([submission_id.as_bytes().as_slice(), &second.to_be_bytes(), &signature].concat())
}

/// Returns the submission that a token confirms; `None` if it is not a valid token of this form.
pub fn verify(key: &MasterKey, form_id: Uuid, token: &str, now: DateTime<Utc>) -> Option<Uuid> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (id, rest) = bytes.split_first_chunk()?;
    let (second, signed) = rest.split_first_chunk()?;
    let (id, second) = (Uuid::from_bytes(*id), i64::from_be_bytes(*second));
    let is_ours = bool::from(signature(key, form_id, id, second).as_slice().ct_eq(signed));
    (is_ours && now.timestamp() < second).then_some(id)
}

fn signature(key: &MasterKey, form_id: Uuid, submission_id: Uuid, second: i64) -> [u8; SIGNATURE_BYTES] {
    let parts = [form_id.to_string(), submission_id.to_string(), second.to_string()];
    let digest = key.digest("form.confirmation", &parts.each_ref().map(String::as_str));
    std::array::from_fn(|at| digest[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_confirms_one_submission_of_one_form_until_it_expires() {
        let (key, form, submission) =
            (MasterKey::of_secret(b"a secret"), Uuid::from_u128(7), Uuid::from_u128(9));
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let token = token(&key, form, submission, at(1_000));
        assert_eq!(verify(&key, form, &token, at(999)), Some(submission));
        assert_eq!(verify(&key, form, &token, at(1_000)), None, "expired");
        assert_eq!(verify(&key, Uuid::from_u128(8), &token, at(1)), None, "of another form");
        assert_eq!(verify(&MasterKey::of_secret(b"other"), form, &token, at(1)), None);
        for at_byte in [0, 20, 23, 30, 40] {
            let mut bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
            bytes[at_byte.min(39)] ^= 1;
            assert_eq!(verify(&key, form, &URL_SAFE_NO_PAD.encode(bytes), at(1)), None, "byte {at_byte}");
        }
        for forged in ["", "x", "AAAA"] {
            assert_eq!(verify(&key, form, forged, at(1)), None);
        }
    }

    #[test]
    fn a_click_answers_traps_but_no_rate_and_no_missing_proof() {
        let is_enough =
            |reasons: &[&str]| is_enough(&reasons.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(is_enough(&["too_fast"]) && is_enough(&["honeypot", "too_fast"]) && is_enough(&["token"]));
        assert!(!is_enough(&[]) && !is_enough(&["rate"]) && !is_enough(&["too_fast", "proof_of_work"]));
    }
}
