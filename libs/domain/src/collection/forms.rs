//! Form settings, their validation, and the state of a form: open, closed or full.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::appearance::Appearance;
use crate::field_error::check_length;
use crate::fields::{Field, FieldType};
use crate::webhooks::FORM_CLOSED;
use crate::{FieldError, answers, fields, timestamps};

pub use crate::answers::UnknownFields;

/// Maximum length of a form's name, in characters.
pub const NAME_CHARS_MAX: usize = 200;
/// Maximum length of the success message, in characters.
pub const SUCCESS_MESSAGE_CHARS_MAX: usize = 2_000;
/// Maximum length of the submit button's label, in characters.
pub const SUBMIT_LABEL_CHARS_MAX: usize = 100;
/// Maximum length of the redirect URL, in characters.
pub const REDIRECT_URL_CHARS_MAX: usize = 2_000;
/// Upper bound of `maxSubmissions`.
pub const MAX_SUBMISSIONS_MAX: i64 = 1_000_000_000;

/// Maximum number of fields in `uniqueBy`.
pub const UNIQUE_BY_MAX: usize = 5;
/// Upper bound of `minSeconds`.
pub const MIN_SECONDS_MAX: i32 = 60;
/// Upper bound of `perMinute` and `perDay`.
pub const RATE_MAX: i32 = 1_000_000;

/// Spam protection of a form's hosted and embedded pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SpamGuard {
    /// Adds a hidden field that must stay empty.
    pub honeypot: bool,
    /// Upper bound of the minimum time in seconds between page view and submission, which is one second for each required
    /// field that is left to fill in; 0 for none.
    #[schemars(range(min = 0, max = MIN_SECONDS_MAX))]
    pub min_seconds: i32,
    /// Requires a proof of work of about one second from the visitor's browser; needs JavaScript.
    pub proof_of_work: bool,
    /// Most submissions from one network address per minute; more are stored as spam. 0 for no limit, null for the limit
    /// of this service.
    #[schemars(range(min = 0, max = RATE_MAX))]
    pub per_minute: Option<i32>,
    /// The same per day.
    #[schemars(range(min = 0, max = RATE_MAX))]
    pub per_day: Option<i32>,
}

impl Default for SpamGuard {
    fn default() -> Self {
        Self { honeypot: true, min_seconds: 2, proof_of_work: false, per_minute: None, per_day: None }
    }
}

/// Settings of a create or update request; `None` where the request has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings<'a> {
    /// Name of the form and heading of its hosted page.
    pub name: Option<&'a str>,
    pub fields: Option<&'a [Field]>,
    /// Message after a submission.
    pub success_message: Option<&'a str>,
    pub submit_label: Option<&'a str>,
    /// Where the browser is redirected after a submission.
    pub redirect_url: Option<&'a str>,
    /// When the form closes.
    pub closes_at: Option<DateTime<Utc>>,
    /// Number of submissions after which the form is full.
    pub max_submissions: Option<i64>,
    /// Fields that together must differ between any two submissions.
    pub unique_by: Option<&'a [String]>,
    pub spam: SpamGuard,
    pub appearance: Option<&'a Appearance>,
    /// Recipient of a mail for each submission.
    pub notify_email: Option<&'a str>,
}

/// Validates the given settings. Whether `uniqueBy` names existing fields is checked only if fields are given too.
pub fn check(settings: &Settings<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = timestamps::check("closesAt", settings.closes_at).into_iter().collect();
    if let Some(name) = settings.name {
        check_length(&mut errors, "name", name, 1, NAME_CHARS_MAX);
    }
    let message = settings.success_message.unwrap_or_default();
    check_length(&mut errors, "successMessage", message, 0, SUCCESS_MESSAGE_CHARS_MAX);
    let label = settings.submit_label.unwrap_or_default();
    check_length(&mut errors, "submitLabel", label, 0, SUBMIT_LABEL_CHARS_MAX);
    if let Some(url) = settings.redirect_url {
        if !url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            errors.push(FieldError::new("redirectUrl", "url", "redirectUrl must be a http(s) address"));
        }
        check_length(&mut errors, "redirectUrl", url, 0, REDIRECT_URL_CHARS_MAX);
    }
    if let Some(fields) = settings.fields {
        errors.extend(fields::check(fields));
    }
    if settings.max_submissions.is_some_and(|max| !(1..=MAX_SUBMISSIONS_MAX).contains(&max)) {
        errors.push(FieldError::new("maxSubmissions", "range", "maxSubmissions must be 1 to 1,000,000,000"));
    }
    let fields = settings.fields.filter(|fields| !fields.is_empty());
    check_unique_by(&mut errors, fields, settings.unique_by.unwrap_or_default());
    if !(0..=MIN_SECONDS_MAX).contains(&settings.spam.min_seconds) {
        let message = format!("spam.minSeconds must be 0 to {MIN_SECONDS_MAX}");
        errors.push(FieldError::new("spam.minSeconds", "range", message));
    }
    for (field, rate) in
        [("spam.perMinute", settings.spam.per_minute), ("spam.perDay", settings.spam.per_day)]
    {
        if rate.is_some_and(|rate| !(0..=RATE_MAX).contains(&rate)) {
            errors.push(FieldError::new(field, "range", format!("{field} must be 0 to {RATE_MAX}")));
        }
    }
    errors.extend(settings.appearance.into_iter().flat_map(Appearance::check));
    if settings.notify_email.is_some_and(|email| !answers::is_email(email)) {
        errors.push(FieldError::new("notifyEmail", "email", "notifyEmail must be an e-mail address"));
    }
    errors
}

/// Files are not allowed: every upload has its own id, so no two submissions would ever be equal.
fn check_unique_by(errors: &mut Vec<FieldError>, fields: Option<&[Field]>, unique_by: &[String]) {
    if unique_by.len() > UNIQUE_BY_MAX {
        let message = format!("uniqueBy takes at most {UNIQUE_BY_MAX} fields");
        errors.push(FieldError::new("uniqueBy", "count", message));
    }
    for (at, name) in unique_by.iter().enumerate() {
        let path = format!("uniqueBy[{at}]");
        let named = fields.map(|fields| fields.iter().find(|field| field.name == *name));
        match named {
            Some(None) => {
                let message = format!("the form has no field called `{name}`");
                errors.push(FieldError::new(path, "unknown_field", message));
            }
            Some(Some(field)) if field.kind == FieldType::File => {
                let message = format!("`{name}` takes files, and no two uploads are the same");
                errors.push(FieldError::new(path, "file", message));
            }
            _ if unique_by[..at].contains(name) => {
                errors.push(FieldError::new(path, "duplicate", format!("`{name}` is named twice")));
            }
            _ => {}
        }
    }
}

/// Why a form accepts no submissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedReason {
    /// `closesAt` has passed.
    Closed,
    /// `maxSubmissions`, or the plan's limit for one form, is reached.
    Full,
}

impl ClosedReason {
    /// Returns why a form with `count` submissions accepts no more at `now`, or `None` if it is open. A `plan_limit`
    /// of -1 means unlimited.
    pub fn of(
        now: DateTime<Utc>,
        closes_at: Option<DateTime<Utc>>,
        count: i64,
        max_submissions: Option<i64>,
        plan_limit: i64,
    ) -> Option<Self> {
        if closes_at.is_some_and(|at| at <= now) {
            return Some(Self::Closed);
        }
        let full =
            max_submissions.is_some_and(|max| count >= max) || (plan_limit >= 0 && count >= plan_limit);
        full.then_some(Self::Full)
    }

    /// Returns `closed` or `full`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Full => "full",
        }
    }
}

/// Returns the webhook event of a form that has closed.
pub fn closed_event(why: ClosedReason, at: DateTime<Utc>, form_id: Uuid, form_name: &str) -> Value {
    let message = match why {
        ClosedReason::Closed => "Its time is over.",
        ClosedReason::Full => "It has all the submissions it takes.",
    };
    json!({
        "type": FORM_CLOSED,
        "timestamp": at,
        "data": {"formId": form_id, "formName": form_name, "reason": why.as_str(), "message": message},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_closes_at_its_second_or_when_full() {
        let at = |seconds: i64| DateTime::from_timestamp(seconds, 0).unwrap();
        assert_eq!(ClosedReason::of(at(9), Some(at(10)), 0, None, 100), None);
        assert_eq!(ClosedReason::of(at(10), Some(at(10)), 0, None, 100), Some(ClosedReason::Closed));
        assert_eq!(ClosedReason::of(at(9), None, 2, Some(3), -1), None);
        assert_eq!(ClosedReason::of(at(9), None, 3, Some(3), -1), Some(ClosedReason::Full));
        assert_eq!(ClosedReason::of(at(9), None, 100, Some(1000), 100), Some(ClosedReason::Full));
    }

    #[test]
    fn the_closed_event_has_the_form_and_the_reason() {
        let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let event = closed_event(ClosedReason::Full, at, Uuid::nil(), "Contact");
        assert_eq!(event["type"], "form.closed");
        assert_eq!(
            (&event["data"]["formName"], &event["data"]["reason"]),
            (&json!("Contact"), &json!("full"))
        );
        assert_eq!(closed_event(ClosedReason::Closed, at, Uuid::nil(), "")["data"]["reason"], "closed");
    }

    fn fields() -> Vec<Field> {
        serde_json::from_value(serde_json::json!([
            {"name": "email", "label": "E-mail", "type": "email"},
            {"name": "cv", "label": "CV", "type": "file"},
        ]))
        .unwrap()
    }

    fn invalid_fields(settings: &Settings<'_>) -> Vec<String> {
        check(settings).into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn each_setting_has_its_rule() {
        let fields = fields();
        let well = Settings { name: Some("F"), fields: Some(&fields), ..Settings::default() };
        assert_eq!(invalid_fields(&well), [""; 0]);
        let wrong = [
            (Settings { name: Some(""), ..well }, "name"),
            (Settings { redirect_url: Some("javascript:alert(1)"), ..well }, "redirectUrl"),
            (Settings { max_submissions: Some(0), ..well }, "maxSubmissions"),
            (Settings { spam: SpamGuard { min_seconds: 61, ..well.spam }, ..well }, "spam.minSeconds"),
            (Settings { spam: SpamGuard { per_minute: Some(-1), ..well.spam }, ..well }, "spam.perMinute"),
            (
                Settings { spam: SpamGuard { per_day: Some(RATE_MAX + 1), ..well.spam }, ..well },
                "spam.perDay",
            ),
            (Settings { notify_email: Some("me"), ..well }, "notifyEmail"),
            (Settings { fields: Some(&[]), ..well }, "fields"),
        ];
        for (settings, place) in wrong {
            assert_eq!(invalid_fields(&settings), [place]);
        }
    }

    #[test]
    fn unique_by_names_up_to_five_different_fields_of_the_form_and_no_files() {
        let fields = fields();
        let validate = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            invalid_fields(&Settings {
                fields: Some(&fields),
                unique_by: Some(&names),
                ..Settings::default()
            })
        };
        assert_eq!(validate(&["email"]), [""; 0]);
        assert_eq!(validate(&["email", "email"]), ["uniqueBy[1]"]);
        assert_eq!(validate(&["cv"]), ["uniqueBy[0]"]);
        assert_eq!(validate(&["email", "phone"]), ["uniqueBy[1]"]);
        assert_eq!(validate(&["email"; 6])[0], "uniqueBy");
        let names = ["email".to_owned(), "phone".to_owned()];
        let alone = Settings { unique_by: Some(&names), ..Settings::default() };
        assert_eq!(invalid_fields(&alone), [""; 0], "unknown names pass if no fields are given");
    }
}
