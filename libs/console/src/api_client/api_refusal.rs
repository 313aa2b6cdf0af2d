//! Why the API refused a call, as its problem document says.

use std::ops::{Deref, DerefMut};

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The code of a call with an unreadable answer.
const UNREADABLE: &str = "internal";

/// A refused call. Boxed, so that an [`Answer`](super::Answer) stays small.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Refusal(Box<RefusalParts>);

/// What a refusal says. Screens show it, so its names are those of the templates.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RefusalParts {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) title: String,
    pub(crate) detail: String,
    #[serde(default)]
    pub(crate) hint: Option<String>,
    #[serde(default)]
    pub(crate) field_errors: Vec<FieldProblem>,
    #[serde(default)]
    pub(crate) retry_after_seconds: Option<u64>,
    #[serde(default)]
    pub(crate) used: Option<i64>,
    #[serde(default)]
    pub(crate) limit: Option<i64>,
    #[serde(default)]
    pub(crate) sign_in_url: Option<String>,
    #[serde(default)]
    pub(crate) request_id: String,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FieldProblem {
    /// The path of the field in the body: `fields[3].label`.
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Deref for Refusal {
    type Target = RefusalParts;

    fn deref(&self) -> &RefusalParts {
        &self.0
    }
}

impl DerefMut for Refusal {
    fn deref_mut(&mut self) -> &mut RefusalParts {
        &mut self.0
    }
}

impl Refusal {
    /// Reads a problem document; `request_id` is that of the page.
    pub(crate) fn read(status: StatusCode, body: &[u8], request_id: &str) -> Self {
        let mut refusal = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|problem| serde_json::from_value(problem).ok())
            .unwrap_or_else(|| {
                Self::new(status, UNREADABLE, "The answer is unreadable", "Please try again.")
            });
        request_id.clone_into(&mut refusal.request_id);
        refusal
    }

    /// Returns it with a link to sign in again, if it has one, that leads back to this page.
    #[must_use]
    pub(crate) fn leading_back_to(mut self, page: &str) -> Self {
        if let Some(link) = &mut self.sign_in_url {
            let base = link.split("returnTo=").next().unwrap_or_default().trim_end_matches(['?', '&']);
            let query =
                form_urlencoded::Serializer::new(String::new()).append_pair("returnTo", page).finish();
            *link = format!("{base}{}{query}", if base.contains('?') { '&' } else { '?' });
        }
        self
    }

    /// A refusal by the console itself.
    pub(crate) fn new(status: StatusCode, code: &str, title: &str, detail: &str) -> Self {
        Self(Box::new(RefusalParts {
            status: status.as_u16(),
            code: code.to_owned(),
            title: title.to_owned(),
            detail: detail.to_owned(),
            hint: None,
            field_errors: Vec::new(),
            retry_after_seconds: None,
            used: None,
            limit: None,
            sign_in_url: None,
            request_id: String::new(),
        }))
    }

    /// A refusal by the console itself, of one field.
    pub(crate) fn at(status: StatusCode, field: &str, message: &str) -> Self {
        let errors = vec![(field.to_owned(), message.to_owned())];
        Self::of_fields(status, "Something is not right yet", message, errors)
    }

    /// A refusal by the console itself, of several fields with a message each.
    pub(crate) fn of_fields(
        status: StatusCode,
        title: &str,
        detail: &str,
        errors: Vec<(String, String)>,
    ) -> Self {
        let mut refusal = Self::new(status, "validation_failed", title, detail);
        refusal.field_errors =
            errors.into_iter().map(|(field, message)| FieldProblem { field, message }).collect();
        refusal
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Whether the viewer must sign in.
    pub(crate) fn is_unauthenticated(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED.as_u16()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_problem_keeps_its_status() {
        let refusal = Refusal::read(StatusCode::BAD_GATEWAY, b"<html>", "r-1234567");
        assert_eq!((refusal.status, refusal.request_id.as_str()), (502, "r-1234567"));
        let body = br#"{"status":400,"code":"validation_failed","title":"Some","detail":"x",
            "fieldErrors":[{"field":"label","code":"length","message":"too long"}]}"#;
        let refusal = Refusal::read(StatusCode::BAD_REQUEST, body, "r-1234567");
        assert_eq!(refusal.field_errors[0].field, "label");
    }

    #[test]
    fn signing_in_again_leads_back_to_the_page() {
        let body = br#"{"status":403,"code":"sign_in_again","title":"x","detail":"x","signInUrl":"/login?again=true"}"#;
        let refusal = Refusal::read(StatusCode::FORBIDDEN, body, "r").leading_back_to("/console/keys?a=b");
        let link = refusal.sign_in_url.as_deref();
        assert_eq!(link, Some("/login?again=true&returnTo=%2Fconsole%2Fkeys%3Fa%3Db"));
        let elsewhere = refusal.leading_back_to("/console");
        assert_eq!(elsewhere.sign_in_url.as_deref(), Some("/login?again=true&returnTo=%2Fconsole"));
    }
}
