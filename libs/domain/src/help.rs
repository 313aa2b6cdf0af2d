//! Words to the operator: what about, and how long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::FieldError;
use crate::answers::is_email;
use crate::field_error::check_length;

/// Characters of a subject.
pub const SUBJECT_CHARS_MAX: usize = 200;
/// Characters of a message.
pub const MESSAGE_CHARS_MAX: usize = 5_000;
/// Characters of an address to come back to, or of a page it is about.
pub const ADDRESS_CHARS_MAX: usize = 2_000;

/// What it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HelpCategory")]
pub enum Category {
    /// `Bug report`
    #[serde(rename = "Bug report")]
    BugReport,
    /// `Feature request`
    #[serde(rename = "Feature request")]
    FeatureRequest,
    /// `Help`
    Help,
    /// `Billing`
    Billing,
    /// `Feedback`
    Feedback,
    /// `API / Integration`
    #[serde(rename = "API / Integration")]
    Integration,
}

impl Category {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BugReport => "Bug report",
            Self::FeatureRequest => "Feature request",
            Self::Help => "Help",
            Self::Billing => "Billing",
            Self::Feedback => "Feedback",
            Self::Integration => "API / Integration",
        }
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HelpSeverity")]
pub enum Severity {
    /// `Critical`
    Critical,
    /// `High`
    High,
    /// `Medium`
    Medium,
    /// `Low`
    Low,
}

impl Severity {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "Critical",
            Self::High => "High",
            Self::Medium => "Medium",
            Self::Low => "Low",
        }
    }
}

/// What is wrong with a request for help; nothing if it may be sent.
pub fn check(subject: &str, message: &str, email: Option<&str>, url: Option<&str>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_length(&mut errors, "subject", subject.trim(), 1, SUBJECT_CHARS_MAX);
    check_length(&mut errors, "message", message.trim(), 1, MESSAGE_CHARS_MAX);
    if subject.contains(['\r', '\n']) {
        errors.push(FieldError::new("subject", "line", "subject must be one line"));
    }
    if email.is_some_and(|email| email.len() > ADDRESS_CHARS_MAX || !is_email(email)) {
        let message = "email must be an address such as `ana@example.com`";
        errors.push(FieldError::new("email", "email", message));
    }
    // `Url` drops line breaks before it reads; the mail has the text, one line for each of these.
    let is_web = |url: &str| {
        !url.contains(char::is_control)
            && Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
    };
    if url.is_some_and(|url| url.len() > ADDRESS_CHARS_MAX || !is_web(url)) {
        errors.push(FieldError::new("url", "url", "url must be a http(s) address"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_and_message_are_bounded() {
        let codes = |subject: &str, message: &str| {
            check(subject, message, None, None).into_iter().map(|c| (c.field, c.code)).collect::<Vec<_>>()
        };
        assert!(codes(&"x".repeat(200), &"ö".repeat(5_000)).is_empty());
        assert_eq!(codes(&"x".repeat(201), "m"), [("subject".to_owned(), "too_long")]);
        assert_eq!(codes("s", &"x".repeat(5_001)), [("message".to_owned(), "too_long")]);
        assert_eq!(codes(" ", "m"), [("subject".to_owned(), "required")]);
        assert_eq!(codes("a\nBcc: b", "m"), [("subject".to_owned(), "line")]);
    }

    #[test]
    fn addresses_are_addresses() {
        assert_eq!(check("s", "m", Some("ana@example.com"), Some("https://a.test/x")), vec![]);
        assert_eq!(check("s", "m", Some("ana"), None)[0].field, "email");
        for url in ["javascript:alert(1)", "https://a.test/\nAccount:  another", "https://a.test/\t"] {
            assert_eq!(check("s", "m", None, Some(url))[0].field, "url", "{url:?}");
        }
    }

    #[test]
    fn words_are_those_that_are_read() {
        for category in [Category::BugReport, Category::FeatureRequest, Category::Help, Category::Integration]
        {
            assert_eq!(serde_json::to_value(category).unwrap(), category.as_str());
        }
        assert_eq!(serde_json::to_value(Severity::Critical).unwrap(), Severity::Critical.as_str());
    }
}
