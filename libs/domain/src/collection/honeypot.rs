//! Bot detection on hosted form pages: a hidden honeypot field, and a signed token with the time of the page view.
//!
//! Submissions from custom forms and JSON clients contain neither, and pass.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::answers::Answers;
use crate::encryption::MasterKey;
use crate::fields::{Field, FieldType};

/// Bytes of a token's signature.
const SIGNATURE_BYTES: usize = 16;

/// Names of the extra fields of our pages. They contain a dot, which names of form fields can't.
pub mod fields {
    /// Signed time of the page view.
    pub const TOKEN: &str = "form.token";
    /// The hidden field, empty unless a bot fills it in.
    pub const HONEYPOT: &str = "contact.website";
    /// Language of the page.
    pub const LANGUAGE: &str = "form.lang";
    /// Whether the page is embedded in a frame.
    pub const EMBEDDED: &str = "form.embed";
    /// The proof of work.
    pub const PROOF: &str = "form.proof";
    /// Theme, colours and frame of the page, as a query.
    pub const LOOK: &str = "form.look";
    /// The token that confirms a submission.
    pub const CONFIRMATION: &str = "form.confirmation";
    /// All names above, and those of the look in the addresses of pages. A form's answers have none of them.
    pub const ALL: [&str; 12] = [
        TOKEN,
        HONEYPOT,
        LANGUAGE,
        EMBEDDED,
        PROOF,
        LOOK,
        CONFIRMATION,
        "form.popup",
        "form.theme",
        "form.background",
        "form.accent",
        "form.radius",
    ];
}

/// Spam reasons, as stored in `spamReasons`.
pub mod reasons {
    /// The hidden field was filled in.
    pub const HONEYPOT: &str = "honeypot";
    /// The form was submitted faster than a person can.
    pub const TOO_FAST: &str = "too_fast";
    /// The token is forged.
    pub const TOKEN: &str = "token";
    /// The proof of work is missing, wrong, expired or used before.
    pub const PROOF: &str = "proof_of_work";
    /// The address sent more submissions than the form accepts from one.
    pub const RATE: &str = "rate";
}

/// Returns the seconds that a person needs at least for a page on which `given` answers are filled in already: one for each
/// required field that is left, up to `min_seconds`. A form without required fields needs one answer.
pub fn seconds_to_fill(fields: &[Field], given: &Answers, min_seconds: i32) -> i32 {
    // Fields with a condition may stay hidden.
    let mut required = fields
        .iter()
        .filter(|field| field.required && field.kind != FieldType::Hidden && field.show_if.is_none());
    let is_visible =
        |name: &str| fields.iter().any(|field| field.name == name && field.kind != FieldType::Hidden);
    let left = match required.clone().count() {
        0 => usize::from(!given.keys().any(|name| is_visible(name))),
        _ => required.by_ref().filter(|field| !given.contains_key(&field.name)).count(),
    };
    i32::try_from(left).unwrap_or(i32::MAX).min(min_seconds)
}

/// Returns the second from which a page counts that is rendered at `second` and takes a person `needed` of `min_seconds`. It
/// is earlier by the difference, so that a token has one format and edges of every release measure alike.
pub fn counts_from(second: i64, min_seconds: i32, needed: i32) -> i64 {
    second - i64::from((min_seconds - needed).max(0))
}

/// Creates the token of a page of this form that counts from `second` (seconds since 1970).
pub fn token(key: &MasterKey, form_id: Uuid, second: i64) -> String {
    let bytes = [second.to_be_bytes().as_slice(), &signature(key, form_id, second)].concat();
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the time in a token; `None` if it is not a valid token of this form.
fn shown_at(key: &MasterKey, form_id: Uuid, token: &str) -> Option<DateTime<Utc>> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (second, signed) = bytes.split_first_chunk()?;
    let second = i64::from_be_bytes(*second);
    let is_ours = bool::from(signature(key, form_id, second).as_slice().ct_eq(signed));
    is_ours.then(|| DateTime::from_timestamp(second, 0))?
}

fn signature(key: &MasterKey, form_id: Uuid, second: i64) -> [u8; SIGNATURE_BYTES] {
    let digest = key.digest("form.token", &[&form_id.to_string(), &second.to_string()]);
    std::array::from_fn(|at| digest[at])
}

/// Returns the spam reasons of a submission. `token` and `honeypot` are the values of the request, if present. A
/// token never expires: slow visitors are welcome.
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
        // Token times are truncated to seconds, so up to a second more may have passed.
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
    fn a_submission_faster_than_a_person_is_spam() {
        let token = token(&key(), FORM, 1_000);
        assert_eq!(signals(Some(&token), Some(""), 2), [""; 0]);
        assert_eq!(signals(Some(&token), Some(""), 86_400 * 30), [""; 0]);
        assert_eq!(signals(Some(&token), Some(""), 1), ["too_fast"]);
        assert_eq!(signals(Some(&token), Some("http://spam.test"), 0), ["honeypot", "too_fast"]);
    }

    #[test]
    fn a_token_is_valid_for_its_form_only_and_unchanged() {
        let of_other = token(&key(), Uuid::from_u128(8), 1_000);
        let other_key = token(&MasterKey::of_secret(b"another"), FORM, 1_000);
        let good = token(&key(), FORM, 1_000);
        let later = good.replacen("AAAAAAAAA", "AAAAAAAAB", 1);
        for forged in [of_other.as_str(), &other_key, "", "x", "AAAAAAAAAAA", &good[1..], &later] {
            assert_eq!(signals(Some(forged), None, 60), ["token"], "{forged}");
        }
    }

    #[test]
    fn a_prefilled_page_takes_a_person_less_time() {
        let fields: Vec<Field> = serde_json::from_value(serde_json::json!([
            {"name": "source", "label": "S", "type": "hidden", "required": true},
            {"name": "name", "label": "N", "type": "text", "required": true},
            {"name": "email", "label": "E", "type": "email", "required": true},
            {"name": "note", "label": "N", "type": "textarea"},
            {"name": "more", "label": "M", "type": "text", "required": true, "showIf": {"field": "note", "equals": "x"}},
        ]))
        .unwrap();
        let seconds = |fields: &[Field], given: &[&str], min_seconds| {
            let given = given.iter().map(|name| ((*name).to_owned(), "x".into())).collect();
            seconds_to_fill(fields, &given, min_seconds)
        };
        assert_eq!(seconds(&fields, &[], 2), 2);
        assert_eq!(seconds(&fields, &[], 60), 2, "one second for each field");
        assert_eq!(seconds(&fields, &[], 1), 1);
        assert_eq!(seconds(&fields, &["name"], 2), 1);
        assert_eq!(seconds(&fields, &["name", "source"], 2), 1);
        assert_eq!(seconds(&fields, &["name", "email"], 2), 0);
        let optional = &fields[3..4];
        assert_eq!([seconds(optional, &[], 2), seconds(optional, &["note"], 2)], [1, 0]);
        assert_eq!([counts_from(100, 2, 2), counts_from(100, 2, 0), counts_from(100, 0, 0)], [100, 98, 100]);
    }

    #[test]
    fn submissions_from_other_pages_have_no_token_and_pass() {
        assert_eq!(signals(None, None, 0), [""; 0]);
        assert_eq!(signals(None, Some("x"), 0), ["honeypot"]);
    }
}
