//! Help requests to the operator: categories, severities and limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::FieldError;
use crate::answers::is_email;
use crate::field_error::check_length;

/// Help requests of an account that are mailed to the operator in one hour. Further ones are only stored.
pub const MAILS_PER_HOUR_MAX: i64 = 5;
/// Maximum length of a subject, in characters.
pub const SUBJECT_CHARS_MAX: usize = 200;
/// Maximum length of a message, in characters.
pub const MESSAGE_CHARS_MAX: usize = 5_000;
/// Maximum length of the e-mail address and of the page URL, in characters.
pub const ADDRESS_CHARS_MAX: usize = 2_000;

/// Topic of a help request.
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
    /// Returns the category's name in the API and in the mail.
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

/// Severity of a help request.
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
    /// Returns the severity's name in the API and in the mail.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "Critical",
            Self::High => "High",
            Self::Medium => "Medium",
            Self::Low => "Low",
        }
    }
}

/// Validates a help request.
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
    // `Url` strips line breaks before parsing, but the mail contains the raw text, one line for each of these values.
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
    fn addresses_are_validated() {
        assert_eq!(check("s", "m", Some("ana@example.com"), Some("https://a.test/x")), vec![]);
        assert_eq!(check("s", "m", Some("ana"), None)[0].field, "email");
        for url in ["javascript:alert(1)", "https://a.test/\nAccount:  another", "https://a.test/\t"] {
            assert_eq!(check("s", "m", None, Some(url))[0].field, "url", "{url:?}");
        }
    }

    #[test]
    fn names_equal_their_json() {
        for category in [Category::BugReport, Category::FeatureRequest, Category::Help, Category::Integration]
        {
            assert_eq!(serde_json::to_value(category).unwrap(), category.as_str());
        }
        assert_eq!(serde_json::to_value(Severity::Critical).unwrap(), Severity::Critical.as_str());
    }
}
