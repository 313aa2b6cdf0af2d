//! Answers to fields that a form does not have: named in the response, stored apart from the others, or refused.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Answers;
use crate::fields::Field;
use crate::{FIELD_ERRORS_MAX, FieldError, honeypot};

/// Most names of ignored fields in a response.
pub const NAMED_MAX: usize = 20;
/// Maximum length of the name of an unknown field, in characters. A longer one is cut in responses, and its answer is not
/// stored.
pub const NAME_CHARS_MAX: usize = 64;
/// Most answers to unknown fields that a submission stores.
pub const STORED_MAX: usize = 20;
/// Maximum size of a stored answer to an unknown field, in bytes.
pub const STORED_BYTES_MAX: usize = 2 << 10;

/// What a form does with answers to fields that it does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnknownFields {
    /// Drops them, and names them in the response as `ignoredFields`.
    #[default]
    Ignore,
    /// Stores up to 20 texts of up to 2 KB under `extra` of the submission, and names the others as `ignoredFields`.
    Store,
    /// Rejects the submission.
    Refuse,
}

impl UnknownFields {
    /// Returns `ignore`, `store` or `refuse`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Store => "store",
            Self::Refuse => "refuse",
        }
    }

    /// Parses the result of [`Self::as_str`]. Any other text, of a newer release, is the default.
    pub fn parse(text: &str) -> Self {
        [Self::Store, Self::Refuse].into_iter().find(|one| one.as_str() == text).unwrap_or_default()
    }
}

/// An answer as it was sent.
#[derive(Debug, Clone, Copy)]
pub enum Sent<'a> {
    /// A member of a JSON body.
    Json(&'a Value),
    /// The values of a posted form, at least one.
    Texts(&'a [String]),
    /// A file.
    File,
}

impl<'a> Sent<'a> {
    /// Returns the text to store, several of them as one; `None` if there is anything but texts.
    fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Json(Value::String(text)) => Some(Cow::Borrowed(text)),
            Self::Json(Value::Array(items)) => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                texts.filter(|texts| !texts.is_empty()).map(|texts| Cow::Owned(texts.join("; ")))
            }
            Self::Texts([text]) => Some(Cow::Borrowed(text)),
            Self::Texts(texts) => Some(Cow::Owned(texts.join("; "))),
            Self::Json(_) | Self::File => None,
        }
    }
}

/// The answers of a submission to fields that its form does not have.
#[derive(Debug, Default, PartialEq)]
pub struct UnknownAnswers {
    /// Names of those that are not stored, cut to [`NAME_CHARS_MAX`] characters, at most [`NAMED_MAX`].
    pub ignored: Vec<String>,
    /// Those to store.
    pub stored: Answers,
}

/// Applies a form's rule to the answers to fields that it does not have. Control fields of our own pages are none of
/// them. Allocates nothing if there are none.
pub fn unknown_answers<'a>(
    fields: &[Field],
    rule: UnknownFields,
    sent: impl Iterator<Item = (&'a str, Sent<'a>)>,
) -> Result<UnknownAnswers, Vec<FieldError>> {
    let (mut unknown, mut errors) = (UnknownAnswers::default(), Vec::new());
    for (name, sent) in sent {
        if name.is_empty() || is_control_field(name) || fields.iter().any(|field| field.name == name) {
            continue;
        }
        match rule {
            UnknownFields::Refuse if errors.len() == FIELD_ERRORS_MAX => break,
            UnknownFields::Refuse => {
                let name = shown(name);
                let message = format!("{name} is not a field of this form");
                errors.push(FieldError::new(name, "unknown_field", message));
            }
            UnknownFields::Ignore if unknown.ignored.len() == NAMED_MAX => break,
            UnknownFields::Ignore => unknown.ignore(name),
            UnknownFields::Store => match storable(name, sent) {
                Some(_) if unknown.stored.len() == STORED_MAX => {
                    let message = format!(
                        "the form stores answers to at most {STORED_MAX} fields that it does not have; {name} is one more"
                    );
                    return Err(vec![FieldError::new(name, "unknown_field", message)]);
                }
                Some(text) => drop(unknown.stored.insert(name.to_owned(), Value::from(text))),
                None => unknown.ignore(name),
            },
        }
    }
    if errors.is_empty() { Ok(unknown) } else { Err(errors) }
}

impl UnknownAnswers {
    fn ignore(&mut self, name: &str) {
        let name = shown(name);
        if self.ignored.len() < NAMED_MAX && !self.ignored.contains(&name) {
            self.ignored.push(name);
        }
    }
}

/// Compares whole names: `form.salary` of another page is an answer.
fn is_control_field(name: &str) -> bool {
    honeypot::fields::ALL.contains(&name)
}

/// Returns the text to store; `None` if it is too long, or if Postgres' jsonb can't store it.
fn storable<'a>(name: &str, sent: Sent<'a>) -> Option<Cow<'a, str>> {
    let is_name = name.chars().count() <= NAME_CHARS_MAX && !name.contains('\0');
    let text = sent.text().filter(|_| is_name)?;
    (text.len() <= STORED_BYTES_MAX && !text.contains('\0')).then_some(text)
}

fn shown(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apply(rule: UnknownFields, given: &Value) -> Result<UnknownAnswers, Vec<FieldError>> {
        let fields: Vec<Field> =
            serde_json::from_value(json!([{"name": "a", "label": "A", "type": "text"}])).unwrap();
        let sent = given.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), Sent::Json(value)));
        unknown_answers(&fields, rule, sent)
    }

    #[test]
    fn ignored_fields_are_named_at_most_twenty_and_cut_to_64_characters() {
        let known = json!({"a": "x", "form.token": "t", "form.confirmation": "t", "contact.website": "",
                           "form.theme": "dark", "": "x"});
        for rule in [UnknownFields::Ignore, UnknownFields::Store, UnknownFields::Refuse] {
            assert_eq!(apply(rule, &known), Ok(UnknownAnswers::default()), "own fields are not unknown");
        }
        let unknown = apply(
            UnknownFields::Ignore,
            &json!({"utm": "x", "a": "x", "b.c": 7, "form.salary": "1", "x": null}),
        )
        .unwrap();
        assert_eq!(
            (unknown.ignored, unknown.stored.len()),
            (["utm", "b.c", "form.salary", "x"].map(str::to_owned).to_vec(), 0)
        );
        let many: Answers = (0..30).map(|at| (format!("é{at}").repeat(40), json!(at))).collect();
        let named = apply(UnknownFields::Ignore, &Value::Object(many)).unwrap().ignored;
        assert_eq!(named.len(), NAMED_MAX);
        assert!(named.iter().all(|name| name.chars().count() == NAME_CHARS_MAX), "{named:?}");
    }

    #[test]
    fn texts_of_up_to_two_kilobytes_are_stored_and_other_values_are_named() {
        let fits = "y".repeat(STORED_BYTES_MAX);
        let long_name = "n".repeat(NAME_CHARS_MAX + 1);
        let given = json!({
            "utm": "mail", "": "x", "empty": "", "fits": fits, "list": ["x", "y"], "nul": "a\0b", "nu\0l": "x",
            "number": 7, "nothing": null, "mixed": ["x", 7], "object": {"x": "y"}, "none": [],
            "long": "y".repeat(STORED_BYTES_MAX + 1), long_name.as_str(): "x",
        });
        let unknown = apply(UnknownFields::Store, &given).unwrap();
        let stored = json!({"utm": "mail", "empty": "", "fits": fits, "list": "x; y"});
        assert_eq!(Value::Object(unknown.stored), stored);
        let named =
            ["nul", "nu\0l", "number", "nothing", "mixed", "object", "none", "long", &long_name[..64]];
        assert_eq!(unknown.ignored, named);
        assert_eq!(Sent::Texts(&["x".to_owned(), "y".to_owned()]).text().as_deref(), Some("x; y"));
        assert_eq!(Sent::File.text(), None);
    }

    #[test]
    fn the_twenty_first_stored_answer_is_rejected_by_name() {
        let of = |count: usize| Value::Object((0..count).map(|at| (format!("x{at}"), json!("y"))).collect());
        assert_eq!(apply(UnknownFields::Store, &of(20)).unwrap().stored.len(), 20);
        let errors = apply(UnknownFields::Store, &of(21)).unwrap_err();
        assert_eq!((errors.len(), errors[0].field.as_str(), errors[0].code), (1, "x20", "unknown_field"));
    }

    #[test]
    fn a_form_can_refuse_unknown_fields_and_says_which() {
        let errors = apply(UnknownFields::Refuse, &json!({"a": "x", "b": "", "utm": null})).unwrap_err();
        let named: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(named, ["b", "utm"]);
        let many: Answers = (0..99).map(|at| (format!("x{at}"), json!("y"))).collect();
        assert_eq!(apply(UnknownFields::Refuse, &Value::Object(many)).unwrap_err().len(), FIELD_ERRORS_MAX);
    }

    #[test]
    fn a_rule_is_stored_by_its_name_and_a_newer_one_is_the_default() {
        for rule in [UnknownFields::Ignore, UnknownFields::Store, UnknownFields::Refuse] {
            assert_eq!(UnknownFields::parse(rule.as_str()), rule);
            assert_eq!(json!(rule), json!(rule.as_str()));
        }
        assert_eq!(UnknownFields::parse("forward"), UnknownFields::Ignore);
    }
}
