//! Submissions: what they may be, when two are the same, and what webhooks are told of them.

pub mod batching;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::FieldError;
use crate::answers::Answers;
use crate::field_error::check_length;
use crate::fields::{Field, FieldType};

/// Most characters of the owner's own name for a submission.
pub const EXTERNAL_ID_CHARS_MAX: usize = 200;
/// Most bytes of a submission, however it comes.
pub const BYTES_MAX: usize = 256 << 10;
/// Most submissions of a form that are kept as spam; older ones go as new ones come.
pub const SPAM_MAX: i64 = 1_000;
/// Most bytes that these take together.
pub const SPAM_BYTES_MAX: i64 = 16 << 20;

/// What is wrong with the owner's own name for a submission.
pub fn check_external_id(external_id: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_length(&mut errors, "externalId", external_id, 1, EXTERNAL_ID_CHARS_MAX);
    errors
}

/// Whether the answers are more than a submission may hold.
pub fn is_too_large(answers: &Answers) -> bool {
    serde_json::to_vec(answers).map_or(true, |written| written.len() > BYTES_MAX)
}

/// What becomes of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "SubmissionStatus")]
pub enum Status {
    /// It counts.
    Received,
    /// It was held to be spam: it doesn't count, and nobody was told of it.
    Spam,
    /// It counts, and was put aside.
    Archived,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Received, Self::Spam, Self::Archived];

    /// `received`, `spam` or `archived`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Spam => "spam",
            Self::Archived => "archived",
        }
    }

    /// The status with that word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether it counts toward limits and `uniqueBy`.
    pub fn counts(self) -> bool {
        self != Self::Spam
    }
}

/// Why no entry of a page was made of a submission, though the form wants one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEntry {
    /// The page was deleted.
    PageGone,
    /// The page has as many entries as it may have.
    PageFull,
    /// The page has no `entryTemplate` any more.
    NoTemplate,
    /// The submission is larger than an entry may be.
    TooLarge,
}

impl NoEntry {
    /// Its stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PageGone => "page_gone",
            Self::PageFull => "page_full",
            Self::NoTemplate => "no_template",
            Self::TooLarge => "too_large",
        }
    }
}

/// What happened to a submission, as webhooks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionEvent {
    /// It came, or was found to be no spam.
    Created,
    /// Its answers were changed.
    Updated,
    /// It is gone.
    Deleted,
}

impl SubmissionEvent {
    /// The event's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "submission.created",
            Self::Updated => "submission.updated",
            Self::Deleted => "submission.deleted",
        }
    }
}

/// What an event says of a submission.
#[derive(Debug, Clone, Copy)]
pub struct SubmissionEventData<'a> {
    /// The form it answers.
    pub form_id: Uuid,
    /// What its owner calls the form.
    pub form_name: &'a str,
    /// The submission.
    pub submission_id: Uuid,
    /// The owner's own name for it.
    pub external_id: Option<&'a str>,
    /// When it came.
    pub submitted_at: DateTime<Utc>,
    /// The answers.
    pub fields: &'a Answers,
}

/// The body webhooks are sent, before `fieldMapping`.
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

/// What two submissions of a form have in common that may not both be there; `None` for one that has no answer to one
/// of the fields, and may be there any number of times.
pub fn digest(fields: &[Field], unique_by: &[String], answers: &Answers) -> Option<[u8; 32]> {
    if unique_by.is_empty() {
        return None;
    }
    // The same fields in another order ask for the same.
    let mut parts = BTreeMap::new();
    for name in unique_by {
        let kind = fields.iter().find(|field| field.name == *name)?.kind;
        parts.insert(name, comparable(kind, answers.get(name)?));
    }
    let written = serde_json::to_vec(&parts).ok()?;
    Some(Sha256::digest(&written).into())
}

/// Below this every whole number is a float of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// An answer as it is compared: texts trimmed, e-mail addresses in small letters, choices in any order, `1.0` as `1`.
fn comparable(kind: FieldType, answer: &Value) -> Value {
    match answer {
        Value::String(text) if kind == FieldType::Email => Value::from(text.trim().to_lowercase()),
        Value::String(text) => Value::from(text.trim()),
        Value::Array(chosen) => {
            let mut chosen: Vec<_> = chosen.iter().map(|choice| comparable(kind, choice)).collect();
            chosen.sort_by_cached_key(Value::to_string);
            Value::Array(chosen)
        }
        Value::Number(number) => match number.as_f64() {
            // Integers stay what they are: as floats the largest would be each other's.
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
    fn two_are_the_same_when_they_agree_on_every_field_as_people_read_them() {
        let same = [
            (["email"].as_slice(), json!({"email": "a@b.co"}), json!({"email": " A@B.co ", "name": "other"})),
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
    fn the_order_of_the_fields_decides_nothing_and_their_names_do() {
        let answers = json!({"email": "a@b.co", "name": "a@b.co"});
        assert_eq!(of(&["email", "name"], answers.clone()), of(&["name", "email"], answers.clone()));
        assert_ne!(of(&["email"], answers.clone()), of(&["name"], answers));
    }

    #[test]
    fn one_without_an_answer_to_each_field_has_no_twin() {
        assert_eq!(of(&["email", "name"], json!({"email": "a@b.co"})), None);
        assert_eq!(of(&["gone"], json!({"gone": "x"})), None);
        assert_eq!(of(&[], json!({"email": "a@b.co"})), None);
    }
}
