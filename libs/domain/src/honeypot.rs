//! Traps for robots on a form's page: a field nobody sees, and a token that says when the page was shown.
//!
//! They stand on our own pages alone. Who posts a form of their own, or JSON, brings neither, and is let through.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::encryption::MasterKey;

/// Bytes of a token's signature.
const SIGNATURE_BYTES: usize = 16;

/// What a page of ours sends beside its answers. A field's name has no dot: none of them is taken for one.
pub mod fields {
    /// When the page was shown.
    pub const TOKEN: &str = "form.token";
    /// What no person fills in.
    pub const HONEYPOT: &str = "contact.website";
    /// The language it was asked for in.
    pub const LANGUAGE: &str = "form.lang";
    /// That it is framed.
    pub const EMBEDDED: &str = "form.embed";
    /// The proof of work.
    pub const PROOF: &str = "form.proof";
}

/// Why a submission is taken for a robot's: stable words, in `spamReasons`.
pub mod reasons {
    /// The field nobody sees was filled in.
    pub const HONEYPOT: &str = "honeypot";
    /// It came back sooner than people answer.
    pub const TOO_FAST: &str = "too_fast";
    /// The page's token is none of ours.
    pub const TOKEN: &str = "token";
    /// The proof of work is missing, wrong, late, or was used before.
    pub const PROOF: &str = "proof_of_work";
}

/// The token of a page of this form that is shown at `second`, in seconds since 1970.
pub fn token(key: &MasterKey, form_id: Uuid, second: i64) -> String {
    let bytes = [second.to_be_bytes().as_slice(), &signature(key, form_id, second)].concat();
    URL_SAFE_NO_PAD.encode(bytes)
}

/// When the page with this token was shown; none if it is no token of this form.
fn shown_at(key: &MasterKey, form_id: Uuid, token: &str) -> Option<DateTime<Utc>> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (second, signed) = bytes.split_first_chunk()?;
    let second = i64::from_be_bytes(*second);
    (signature(key, form_id, second) == signed).then(|| DateTime::from_timestamp(second, 0))?
}

fn signature(key: &MasterKey, form_id: Uuid, second: i64) -> [u8; SIGNATURE_BYTES] {
    let digest = key.digest("form.token", &[&form_id.to_string(), &second.to_string()]);
    std::array::from_fn(|at| digest[at])
}

/// What gives a posted form away as a robot's. `token` and `honeypot` are as they came, if they did; a page older
/// than any is somebody's who took their time.
pub fn spam_signals(
    key: &MasterKey,
    form_id: Uuid,
    (token, honeypot): (Option<&str>, Option<&str>),
    min_seconds: i64,
    now: DateTime<Utc>,
) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if honeypot.is_some_and(|text| !text.is_empty()) {
        reasons.push(reasons::HONEYPOT);
    }
    match token.map(|token| shown_at(key, form_id, token)) {
        None => {}
        Some(None) => reasons.push(reasons::TOKEN),
        // A token is as old as its second; of one that counts as one second, a little more may have passed.
        Some(Some(at)) if (now - at).num_milliseconds() < min_seconds * 1_000 => {
            reasons.push(reasons::TOO_FAST);
        }
        Some(Some(_)) => {}
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Uuid = Uuid::from_u128(7);

    fn key() -> MasterKey {
        MasterKey::of_secret(b"a secret")
    }

    fn signals(token: Option<&str>, honeypot: Option<&str>, seconds_later: i64) -> Vec<&'static str> {
        let now = DateTime::from_timestamp(1_000 + seconds_later, 0).unwrap();
        spam_signals(&key(), FORM, (token, honeypot), 2, now)
    }

    #[test]
    fn who_answers_sooner_than_people_do_is_a_robot() {
        let token = token(&key(), FORM, 1_000);
        assert_eq!(signals(Some(&token), Some(""), 2), [""; 0]);
        assert_eq!(signals(Some(&token), Some(""), 86_400 * 30), [""; 0]);
        assert_eq!(signals(Some(&token), Some(""), 1), ["too_fast"]);
        assert_eq!(signals(Some(&token), Some("http://spam.test"), 0), ["honeypot", "too_fast"]);
    }

    #[test]
    fn a_token_is_good_for_its_form_and_as_it_was_given_out() {
        let of_other = token(&key(), Uuid::from_u128(8), 1_000);
        let other_key = token(&MasterKey::of_secret(b"another"), FORM, 1_000);
        let good = token(&key(), FORM, 1_000);
        let later = good.replacen("AAAAAAAAA", "AAAAAAAAB", 1);
        for forged in [of_other.as_str(), &other_key, "", "x", "AAAAAAAAAAA", &good[1..], &later] {
            assert_eq!(signals(Some(forged), None, 60), ["token"], "{forged}");
        }
    }

    #[test]
    fn what_comes_from_no_page_of_ours_brings_no_token_and_is_let_through() {
        assert_eq!(signals(None, None, 0), [""; 0]);
        assert_eq!(signals(None, Some("x"), 0), ["honeypot"]);
    }
}
