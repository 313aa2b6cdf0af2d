//! Submissions: limits, status, uniqueness and webhook events.

pub mod batching;
mod search;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::FieldError;
use crate::answers::{Answers, ascii_domain};
use crate::field_error::check_length;
use crate::fields::{Field, FieldType};

pub use search::{SearchTerm, search_terms};

/// Maximum length of an external id, in characters.
pub const EXTERNAL_ID_CHARS_MAX: usize = 200;
/// Maximum size of a submission in bytes, over every interface.
pub const BYTES_MAX: usize = 256 << 10;
/// Maximum number of retained spam submissions of one form; new ones replace the oldest.
pub const SPAM_MAX: i64 = 1_000;
/// Maximum number of stored submissions of one form that exceeded the rate of their address. Further ones are refused, as they
/// are beyond [`SPAM_BYTES_MAX`].
pub const RATE_LIMITED_MAX: i64 = 1_000;
/// Maximum size of a form's spam submissions in bytes, with their files; those over the rate of their address have no files.
pub const SPAM_BYTES_MAX: i64 = 16 << 20;
/// Maximum size of the files that one spam submission keeps, so that they fit beside its answers.
pub const SPAM_FILES_BYTES_MAX: i64 = SPAM_BYTES_MAX - (1 << 20);

/// Validates an external id.
pub fn check_external_id(external_id: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_length(&mut errors, "externalId", external_id, 1, EXTERNAL_ID_CHARS_MAX);
    errors
}

/// Returns whether the answers exceed the maximum size of a submission.
pub fn is_too_large(answers: &Answers) -> bool {
    serde_json::to_vec(answers).map_or(true, |written| written.len() > BYTES_MAX)
}

/// Status of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "SubmissionStatus")]
pub enum Status {
    /// Counts toward limits.
    Received,
    /// Classified as spam: doesn't count, and triggered no notification.
    Spam,
    /// Counts toward limits, but is archived.
    Archived,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Received, Self::Spam, Self::Archived];

    /// Returns `received`, `spam` or `archived`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Spam => "spam",
            Self::Archived => "archived",
        }
    }

    /// Parses the result of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Returns whether a submission of this status counts toward limits and `uniqueBy`.
    pub fn counts(self) -> bool {
        self != Self::Spam
    }
}

/// Why a submission created no entry on its form's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEntry {
    /// The page was deleted.
    PageGone,
    /// The page has the maximum number of entries.
    PageFull,
    /// The page has no `entryTemplate` any more.
    NoTemplate,
    /// The submission exceeds the maximum size of an entry.
    TooLarge,
}

impl NoEntry {
    /// Returns the reason's name in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PageGone => "page_gone",
            Self::PageFull => "page_full",
            Self::NoTemplate => "no_template",
            Self::TooLarge => "too_large",
        }
    }
}

/// A change of a submission, as a webhook event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionEvent {
    /// Received, or reclassified as no spam.
    Created,
    Updated,
    Deleted,
}

impl SubmissionEvent {
    /// Returns the event's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "submission.created",
            Self::Updated => "submission.updated",
            Self::Deleted => "submission.deleted",
        }
    }
}

/// Data of a submission event.
#[derive(Debug, Clone, Copy)]
pub struct SubmissionEventData<'a> {
    pub form_id: Uuid,
    /// Name of the form.
    pub form_name: &'a str,
    pub submission_id: Uuid,
    pub external_id: Option<&'a str>,
    pub submitted_at: DateTime<Utc>,
    pub fields: &'a Answers,
}

/// Returns the body of a webhook event, before `fieldMapping`.
pub fn event_body(event: SubmissionEvent, at: DateTime<Utc>, data: &SubmissionEventData<'_>) -> Value {
    json!({
        "type": event.as_str(),
        "timestamp": at,
        "data": {
            "formId": data.form_id,
            "formName": data.form_name,
            "submissionId": data.submission_id,
            "externalId": data.external_id,
            "submittedAt": data.submitted_at,
            "fields": data.fields,
        },
    })
}

/// Returns the digest of the answers to `uniqueBy`: no two submissions of a form may have the same. `None` if an
/// answer is missing, because such a submission is never a duplicate.
pub fn digest(fields: &[Field], unique_by: &[String], answers: &Answers) -> Option<[u8; 32]> {
    if unique_by.is_empty() {
        return None;
    }
    // The order of the fields in `uniqueBy` has no effect.
    let mut parts = BTreeMap::new();
    for name in unique_by {
        let kind = fields.iter().find(|field| field.name == *name)?.kind;
        parts.insert(name, comparable(kind, answers.get(name)?));
    }
    let written = serde_json::to_vec(&parts).ok()?;
    Some(Sha256::digest(&written).into())
}

/// Below this bound a float represents every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Normalizes an e-mail address: in lower case, with the ASCII form of its domain, which some browsers submit.
fn comparable_email(text: &str) -> String {
    let lower = text.trim().to_lowercase();
    let ascii = lower.rsplit_once('@').and_then(|(local, domain)| Some((local, ascii_domain(domain)?)));
    ascii.map(|(local, domain)| format!("{local}@{domain}")).unwrap_or(lower)
}

/// Normalizes an answer for comparison: texts trimmed, e-mail addresses in lower case, choices sorted, `1.0` as `1`.
fn comparable(kind: FieldType, answer: &Value) -> Value {
    match answer {
        Value::String(text) if kind == FieldType::Email => Value::from(comparable_email(text)),
        Value::String(text) => Value::from(text.trim()),
        Value::Array(chosen) => {
            let mut chosen: Vec<_> = chosen.iter().map(|choice| comparable(kind, choice)).collect();
            chosen.sort_by_cached_key(Value::to_string);
            Value::Array(chosen)
        }
        Value::Number(number) => match number.as_f64() {
            // Integers stay integers: as floats, large ones would be equal.
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and smaller than that")]
            Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < EXACT => {
                Value::from(value as i64)
            }
            _ => answer.clone(),
        },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<Field> {
        serde_json::from_value(json!([
            {"name": "email", "label": "E", "type": "email"},
            {"name": "name", "label": "N", "type": "text"},
            {"name": "many", "label": "M", "type": "multiselect", "options": ["x", "y"]},
            {"name": "n", "label": "N", "type": "number"},
        ]))
        .unwrap()
    }

    fn of(unique_by: &[&str], answers: Value) -> Option<[u8; 32]> {
        let unique_by: Vec<String> = unique_by.iter().map(ToString::to_string).collect();
        digest(&fields(), &unique_by, answers.as_object().unwrap())
    }

    #[test]
    fn answers_are_compared_as_people_read_them() {
        let same = [
            (["email"].as_slice(), json!({"email": "a@b.co"}), json!({"email": " A@B.co ", "name": "other"})),
            (&["email"], json!({"email": "a@MÜNCHEN.de"}), json!({"email": "a@xn--mnchen-3ya.de"})),
            (&["name"], json!({"name": "Ann"}), json!({"name": " Ann\n"})),
            (&["many"], json!({"many": ["x", "y"]}), json!({"many": ["y", "x"]})),
            (&["n"], json!({"n": 1}), json!({"n": 1.0})),
            (&["n"], json!({"n": 0}), json!({"n": -0.0})),
        ];
        for (by, one, other) in same {
            assert_eq!(of(by, one.clone()), of(by, other.clone()), "{one} {other}");
        }
        let different = [
            (["name"].as_slice(), json!({"name": "Ann"}), json!({"name": "ann"})),
            (
                &["email", "name"],
                json!({"email": "a@b.co", "name": "x"}),
                json!({"email": "a@b.co", "name": "y"}),
            ),
            (&["many"], json!({"many": ["x"]}), json!({"many": ["x", "y"]})),
            (&["n"], json!({"n": 1}), json!({"n": 1.5})),
            (&["n"], json!({"n": 9_007_199_254_740_993_i64}), json!({"n": 9_007_199_254_740_992_i64})),
        ];
        for (by, one, other) in different {
            assert_ne!(of(by, one.clone()), of(by, other.clone()), "{one} {other}");
        }
    }

    #[test]
    fn the_order_of_the_fields_has_no_effect_and_their_names_have() {
        let answers = json!({"email": "a@b.co", "name": "a@b.co"});
        assert_eq!(of(&["email", "name"], answers.clone()), of(&["name", "email"], answers.clone()));
        assert_ne!(of(&["email"], answers.clone()), of(&["name"], answers));
    }

    #[test]
    fn a_submission_without_all_answers_has_no_duplicate() {
        assert_eq!(of(&["email", "name"], json!({"email": "a@b.co"})), None);
        assert_eq!(of(&["gone"], json!({"gone": "x"})), None);
        assert_eq!(of(&[], json!({"email": "a@b.co"})), None);
    }
}
