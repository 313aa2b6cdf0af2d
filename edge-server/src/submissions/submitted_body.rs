//! The body of a submission, and the kind of client that sent it.

use std::collections::BTreeMap;

use domain::answers::{self, Answers, Sent, UnknownAnswers};
use domain::forms::ClosedReason;
use domain::{FieldError, honeypot};
use http::{HeaderMap, header};
use store::forms::OpenForm;
use web::{Code, Problem};

use crate::forms::pages::page::Presentation;

/// The text values of a posted form, by field name.
pub(super) type FormPairs = BTreeMap<String, Vec<String>>;

/// The mode of the request, which browsers send over https and on this machine.
const SEC_FETCH_MODE: &str = "sec-fetch-mode";

/// The kind of response that a client expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// JSON.
    Api,
    /// A page, because a browser posted the form and shows the response.
    Browser,
}

impl ClientKind {
    /// A form that a browser posts names `text/html` in `Accept`. `fetch` and curl send `*/*`: they follow no redirect to a
    /// page of another origin, and read JSON. A script that names `text/html` is known by its mode.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let accepts_page = headers.get_all(header::ACCEPT).iter().any(|value| {
            value.to_str().is_ok_and(|accept| accept.to_ascii_lowercase().contains("text/html"))
        });
        let navigates = headers.get(SEC_FETCH_MODE).is_none_or(|mode| mode == "navigate");
        match BodyKind::of(headers) {
            BodyKind::UrlEncoded | BodyKind::Multipart(_) if accepts_page && navigates => Self::Browser,
            _ => Self::Api,
        }
    }
}

/// The kind of a body, by its `Content-Type`.
pub(super) enum BodyKind {
    UrlEncoded,
    /// With its boundary.
    Multipart(String),
    /// JSON, or an unsupported type.
    Other,
}

impl BodyKind {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let content_type = header_text(headers, &header::CONTENT_TYPE);
        if let Ok(boundary) = multer::parse_boundary(content_type) {
            return Self::Multipart(boundary);
        }
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            Self::UrlEncoded
        } else {
            Self::Other
        }
    }
}

/// A body that was read to its end.
pub(super) struct SubmittedBody {
    pub(super) content: Content,
    /// The digest of the whole body, equal for a repeated submission.
    pub(super) digest: [u8; 32],
    /// The presentation of the page that was submitted.
    pub(super) presentation: Presentation,
    /// Errors of files that were rejected on arrival.
    pub(super) file_errors: Vec<FieldError>,
    /// Names of files that were sent for unknown fields, and not stored.
    pub(super) unknown_files: Vec<String>,
    /// Set if the form was closed before its files arrived. They were not stored, so the submission is not stored either,
    /// even if the form is open by now.
    pub(super) closed: Option<ClosedReason>,
}

/// The parsed content of a body.
pub(super) enum Content {
    Json(Answers),
    Form(FormPairs),
}

impl SubmittedBody {
    /// Returns the answers to the form's fields.
    pub(super) fn answers(&self, open: &OpenForm) -> Answers {
        match &self.content {
            Content::Json(answers) => answers::from_json(&open.form.fields, answers),
            Content::Form(pairs) => answers::from_form_data(&open.form.fields, pairs),
        }
    }

    /// Applies the form's rule to the answers to fields that it does not have.
    pub(super) fn unknown_answers(&self, open: &OpenForm) -> Result<UnknownAnswers, Vec<FieldError>> {
        let (fields, rule) = (&open.form.fields, open.form.unknown_fields);
        match &self.content {
            Content::Json(given) => {
                let sent = given.iter().map(|(name, value)| (name.as_str(), Sent::Json(value)));
                answers::unknown_answers(fields, rule, sent)
            }
            Content::Form(pairs) => {
                let texts = pairs.iter().map(|(name, texts)| (name.as_str(), Sent::Texts(texts)));
                let files = self.unknown_files.iter().map(|name| (name.as_str(), Sent::File));
                answers::unknown_answers(fields, rule, texts.chain(files))
            }
        }
    }

    /// Returns a control field of the edge's own page. An API client can only send a proof of work, as that is required of
    /// all clients.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        match &self.content {
            Content::Json(answers) if name == honeypot::fields::PROOF => answers.get(name)?.as_str(),
            Content::Json(_) => None,
            Content::Form(pairs) => pairs.get(name)?.first().map(String::as_str),
        }
    }
}

/// Returns the problem for a body over the limit.
pub(super) fn too_large() -> Problem {
    Problem::new(Code::PayloadTooLarge, "a submission may have at most 256 KiB, not counting files")
}

/// Returns a header's value, or an empty string.
fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
