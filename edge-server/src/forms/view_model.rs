//! A form's fields as its page asks them: with what was answered so far, and what is wrong with it.

use domain::FieldError;
use domain::answers::Answers;
use domain::fields::{Field, FieldType};
use serde::Serialize;
use serde_json::Value;
use store::form_files::WaitingFile;
use uuid::Uuid;

use super::languages::{Messages, size};

/// One field, as the template asks it.
#[derive(Debug, Serialize)]
pub(crate) struct FieldModel<'a> {
    id: String,
    name: &'a str,
    label: &'a str,
    #[serde(rename = "type")]
    kind: FieldType,
    required: bool,
    /// Browsers are to insist on an answer.
    must: bool,
    placeholder: &'a str,
    options: Vec<Choice<'a>>,
    value: String,
    ticked: bool,
    /// Attributes that hold numbers alone.
    limits: String,
    accept: Option<&'a str>,
    autocomplete: Option<&'static str>,
    /// What files are taken, where not all are.
    kinds: String,
    hint: String,
    kept: Option<Kept>,
    error: Option<String>,
    described_by: String,
}

#[derive(Debug, Serialize)]
struct Choice<'a> {
    text: &'a str,
    chosen: bool,
}

/// A file that has come already, with answers that were not right.
#[derive(Debug, Serialize)]
struct Kept {
    id: Uuid,
    said: String,
}

/// What is wrong with one answer, as the summary says it.
#[derive(Debug, Serialize)]
pub(crate) struct Mistake<'a> {
    id: String,
    label: &'a str,
    message: String,
}

/// What is known of the answers so far.
pub(crate) struct FormModel<'a> {
    pub(crate) words: &'a Messages,
    pub(crate) given: &'a Answers,
    pub(crate) wrong: &'a [FieldError],
    pub(crate) files: &'a [WaitingFile],
    /// Most bytes of a file of a field that says nothing.
    pub(crate) max_file_bytes: u64,
}

impl FormModel<'_> {
    pub(crate) fn question<'a>(&self, field: &'a Field) -> FieldModel<'a> {
        let given = self.given.get(&field.name);
        let id = id_of(field);
        let error =
            self.wrong.iter().find(|one| one.field == field.name).map(|one| self.sentence(field, one));
        let is_file = field.kind == FieldType::File;
        let described = [(error.is_some(), "error"), (is_file, "hint")];
        let described = described.iter().filter(|(is, _)| *is).map(|(_, what)| format!("{id}-{what}"));
        let described_by = described.collect::<Vec<_>>().join(" ");
        let kept = self.kept(field);
        FieldModel {
            name: &field.name,
            label: &field.label,
            kind: field.kind,
            required: field.required,
            must: field.required && field.show_if.is_none() && kept.is_none(),
            placeholder: field.placeholder.as_deref().unwrap_or_default(),
            options: field
                .options
                .iter()
                .map(|text| Choice { text, chosen: is_chosen(given, text) })
                .collect(),
            value: given.map(text_of).unwrap_or_default(),
            ticked: given == Some(&Value::Bool(true)),
            limits: limits(field),
            accept: field.accept.as_deref().filter(|_| is_file),
            autocomplete: autocomplete(field),
            kinds: field.accept.as_deref().filter(|_| is_file).map(kinds).unwrap_or_default(),
            hint: if is_file { self.hint(field) } else { String::new() },
            kept,
            error,
            described_by,
            id,
        }
    }

    /// What is wrong, in the order of the fields.
    pub(crate) fn mistakes<'a>(&self, fields: &'a [Field]) -> Vec<Mistake<'a>> {
        let of = |field: &'a Field| {
            let error = self.wrong.iter().find(|one| one.field == field.name)?;
            Some(Mistake { id: id_of(field), label: &field.label, message: self.sentence(field, error) })
        };
        fields.iter().filter_map(of).collect()
    }

    fn sentence(&self, field: &Field, error: &FieldError) -> String {
        if error.code == "file_size" && field.max_file_size.is_none() {
            let capped = Field { max_file_size: Some(self.max_file_bytes), ..field.clone() };
            return self.words.about(&capped, error.code).unwrap_or_default();
        }
        self.words.about(field, error.code).unwrap_or_else(|| error.message.clone())
    }

    fn hint(&self, field: &Field) -> String {
        let bytes = field.max_file_size.unwrap_or(u64::MAX).min(self.max_file_bytes);
        self.words.page.file_size.replace("{size}", &size(bytes))
    }

    fn kept(&self, field: &Field) -> Option<Kept> {
        let id: Uuid = self.given.get(&field.name)?.as_str()?.parse().ok()?;
        let file = self.files.iter().find(|file| file.id == id && file.field == field.name)?;
        Some(Kept { id, said: self.words.page.file_kept.replace("{name}", &file.filename) })
    }
}

fn id_of(field: &Field) -> String {
    format!("field-{}", field.name)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

fn is_chosen(given: Option<&Value>, option: &str) -> bool {
    match given {
        Some(Value::String(text)) => text == option,
        Some(Value::Array(chosen)) => chosen.iter().any(|one| one == option),
        _ => false,
    }
}

/// What browsers check as we do. They count other units than we do in rare letters, so a limit is only told to them
/// where theirs can't be stricter; a `pattern` is written for another engine, and stays ours.
fn limits(field: &Field) -> String {
    let mut limits = String::new();
    let mut add = |name: &str, limit: Option<String>| {
        limits.extend(limit.map(|limit| format!(" {name}=\"{limit}\"")));
    };
    if field.kind == FieldType::Number {
        add("min", field.min.map(|limit| limit.to_string()));
        add("max", field.max.map(|limit| limit.to_string()));
    } else if field.kind != FieldType::Date {
        add("minlength", field.min_length.map(|limit| limit.to_string()));
        add("maxlength", field.max_length.map(|limit| (u64::from(limit) * 2).to_string()));
    }
    limits
}

/// An `accept` as people read it: `.pdf,image/png` is `PDF, PNG`.
fn kinds(accept: &str) -> String {
    let kind = |entry: &str| match entry.split_once('/') {
        Some((_, subtype)) if subtype.len() <= 5 && subtype != "*" => subtype.to_uppercase(),
        Some(_) => entry.to_owned(),
        None => entry.trim_start_matches('.').to_uppercase(),
    };
    let entries = accept.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
    entries.map(kind).collect::<Vec<_>>().join(", ")
}

/// What browsers may fill in by themselves (WCAG 1.3.5).
fn autocomplete(field: &Field) -> Option<&'static str> {
    match (field.kind, field.name.to_lowercase().as_str()) {
        (FieldType::Email, _) => Some("email"),
        (FieldType::Tel, _) => Some("tel"),
        (FieldType::Url, _) => Some("url"),
        (FieldType::Text, "name" | "fullname" | "full_name" | "full-name") => Some("name"),
        (FieldType::Text, "company" | "organization" | "organisation") => Some("organization"),
        _ => None,
    }
}
