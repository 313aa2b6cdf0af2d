//! The view model of a form's page: fields with previous answers and errors.

use std::borrow::Cow;

use domain::FieldError;
use domain::answers::Answers;
use domain::fields::{Display, Field, FieldType};
use serde::Serialize;
use serde_json::Value;
use store::form_files::WaitingFile;
use uuid::Uuid;

use super::languages::{Messages, size};

/// A field, as the template renders it.
#[derive(Debug, Serialize)]
pub(crate) struct FieldModel<'a> {
    id: String,
    name: &'a str,
    label: &'a str,
    #[serde(rename = "type")]
    kind: FieldType,
    required: bool,
    /// Whether browsers require an answer.
    must: bool,
    placeholder: &'a str,
    help: &'a str,
    /// `radio` or `scale` if the field is not shown as its type's usual control.
    shown_as: &'static str,
    /// Whether one of the options is chosen.
    has_choice: bool,
    options: Vec<Choice<'a>>,
    value: String,
    ticked: bool,
    /// HTML attributes with numbers only.
    limits: String,
    accept: Option<&'a str>,
    autocomplete: Option<&'static str>,
    /// The accepted file types, if not all are.
    kinds: String,
    hint: String,
    uploaded: Option<UploadedFile>,
    error: Option<String>,
    described_by: String,
}

#[derive(Debug, Serialize)]
struct Choice<'a> {
    text: Cow<'a, str>,
    chosen: bool,
}

/// A file that was uploaded with answers that had errors.
#[derive(Debug, Serialize)]
struct UploadedFile {
    id: Uuid,
    text: String,
}

/// An error in an answer, as the summary lists it.
#[derive(Debug, Serialize)]
pub(crate) struct FieldErrorModel<'a> {
    /// `None` for a field that the form does not have.
    id: Option<String>,
    label: &'a str,
    message: String,
}

/// Answers and errors that a form is shown with.
#[derive(Debug, Default)]
pub(crate) struct Prefill<'a> {
    pub(crate) answers: Answers,
    pub(crate) errors: &'a [FieldError],
    pub(crate) files: &'a [WaitingFile],
    /// The token of the submitted page, so that the time trap measures from its first display.
    pub(crate) token: Option<&'a str>,
}

/// The input of the view model.
pub(crate) struct FormModel<'a> {
    pub(crate) messages: &'a Messages,
    pub(crate) prefill: &'a Prefill<'a>,
    /// Size limit of files of fields without one.
    pub(crate) max_file_bytes: u64,
}

impl FormModel<'_> {
    /// Returns the model of a field.
    pub(crate) fn field<'a>(&self, field: &'a Field) -> FieldModel<'a> {
        let answer = self.prefill.answers.get(&field.name);
        let id = id_of(field);
        let error = self
            .prefill
            .errors
            .iter()
            .find(|one| one.field == field.name)
            .map(|one| self.message(field, one));
        let is_file = field.kind == FieldType::File;
        let help = field.help.as_deref().unwrap_or_default();
        let descriptions = [(error.is_some(), "error"), (!help.is_empty(), "help"), (is_file, "hint")];
        let descriptions = descriptions.iter().filter(|(is_shown, _)| *is_shown);
        let descriptions = descriptions.map(|(_, suffix)| format!("{id}-{suffix}"));
        let described_by = descriptions.collect::<Vec<_>>().join(" ");
        let uploaded = self.uploaded(field);
        let options = choices(field, answer);
        FieldModel {
            name: &field.name,
            label: &field.label,
            kind: field.kind,
            required: field.required,
            must: field.required && field.show_if.is_none() && uploaded.is_none(),
            placeholder: field.placeholder.as_deref().unwrap_or_default(),
            help,
            shown_as: shown_as(field),
            has_choice: options.iter().any(|choice| choice.chosen),
            options,
            value: answer.map(text_of).unwrap_or_default(),
            ticked: answer == Some(&Value::Bool(true)),
            limits: limits(field),
            accept: field.accept.as_deref().filter(|_| is_file),
            autocomplete: autocomplete(field),
            kinds: field.accept.as_deref().filter(|_| is_file).map(kinds).unwrap_or_default(),
            hint: if is_file { self.hint(field) } else { String::new() },
            uploaded,
            error,
            described_by,
            id,
        }
    }

    /// Returns the errors in the order of the fields, and then those of fields that the form does not have.
    pub(crate) fn errors<'a>(&'a self, fields: &'a [Field]) -> Vec<FieldErrorModel<'a>> {
        let error_of = |field: &'a Field| {
            let error = self.prefill.errors.iter().find(|one| one.field == field.name)?;
            Some(FieldErrorModel {
                id: Some(id_of(field)),
                label: &field.label,
                message: self.message(field, error),
            })
        };
        let is_unknown = |error: &&FieldError| fields.iter().all(|field| field.name != error.field);
        let unknown = self.prefill.errors.iter().filter(is_unknown).map(|error| FieldErrorModel {
            id: None,
            label: &error.field,
            message: error.message.clone(),
        });
        fields.iter().filter_map(error_of).chain(unknown).collect()
    }

    fn message(&self, field: &Field, error: &FieldError) -> String {
        if error.code == "file_size" && field.max_file_size.is_none() {
            let capped = Field { max_file_size: Some(self.max_file_bytes), ..field.clone() };
            return self.messages.error(&capped, error.code).unwrap_or_default();
        }
        self.messages.error(field, error.code).unwrap_or_else(|| error.message.clone())
    }

    fn hint(&self, field: &Field) -> String {
        let bytes = field.max_file_size.unwrap_or(u64::MAX).min(self.max_file_bytes);
        self.messages.page.file_size.replace("{size}", &size(bytes))
    }

    fn uploaded(&self, field: &Field) -> Option<UploadedFile> {
        let id: Uuid = self.prefill.answers.get(&field.name)?.as_str()?.parse().ok()?;
        let file = self.prefill.files.iter().find(|file| file.id == id && file.field == field.name)?;
        Some(UploadedFile { id, text: self.messages.page.file_stored.replace("{name}", &file.filename) })
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

/// Returns the rendering of a field, if it is not that of its type.
fn shown_as(field: &Field) -> &'static str {
    match (field.kind, field.display) {
        (FieldType::Select, Some(Display::Radio)) => "radio",
        (FieldType::Number, Some(Display::Scale)) if field.scale().is_some() => "scale",
        _ => "",
    }
}

/// Returns the options of a field, or the points of its scale.
fn choices<'a>(field: &'a Field, answer: Option<&Value>) -> Vec<Choice<'a>> {
    if let Some(points) = field.scale() {
        let chosen = answer.and_then(Value::as_f64);
        return points
            .map(|point| Choice { text: point.to_string().into(), chosen: chosen == Some(point as f64) })
            .collect();
    }
    let options = field.options.iter();
    options.map(|text| Choice { text: text.into(), chosen: is_chosen(answer, text) }).collect()
}

fn is_chosen(answer: Option<&Value>, option: &str) -> bool {
    match answer {
        Some(Value::String(text)) => text == option,
        Some(Value::Array(chosen)) => chosen.iter().any(|one| one == option),
        _ => false,
    }
}

/// Returns the limits that browsers check too. They count UTF-16 units, so a length limit is doubled: the browser must not
/// be stricter than the server. A `pattern` is for another regex engine and stays on the server.
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

/// Formats an `accept` for people: `.pdf,image/png` becomes `PDF, PNG`.
fn kinds(accept: &str) -> String {
    let kind = |entry: &str| match entry.split_once('/') {
        Some((_, subtype)) if subtype.len() <= 5 && subtype != "*" => subtype.to_uppercase(),
        Some(_) => entry.to_owned(),
        None => entry.trim_start_matches('.').to_uppercase(),
    };
    let entries = accept.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
    entries.map(kind).collect::<Vec<_>>().join(", ")
}

/// Returns the `autocomplete` token of a field (WCAG 1.3.5).
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
