//! Validation of webhook settings.

use std::collections::BTreeMap;

use url::Url;

use super::events::{EVENTS, EVENTS_MAX};
use super::field_mapping::{MAPPED_CHARS_MAX, MAPPED_MAX};
use super::template::Template;
use crate::FieldError;
use crate::chat::teams;
use crate::field_error::check_length;

/// Maximum length of a URL, in bytes.
pub const URL_BYTES_MAX: usize = 2_000;
/// Maximum length of a description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 500;

/// Settings of a create or update request; `None` where the request has none.
#[derive(Debug, Default)]
pub struct WebhookSettings<'a> {
    /// URL that receives the deliveries.
    pub url: Option<&'a str>,
    pub events: Option<&'a [String]>,
    pub description: Option<&'a str>,
    /// Names of fields in deliveries, by field name.
    pub field_mapping: Option<&'a BTreeMap<String, String>>,
    pub telegram_chat_id: Option<&'a str>,
}

/// Validates webhook settings. `outbound` checks where a URL may lead.
pub fn check(settings: &WebhookSettings<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(settings.url.and_then(check_url));
    errors.extend(settings.events.map(check_events).unwrap_or_default());
    let description = settings.description.unwrap_or_default();
    check_length(&mut errors, "description", description, 0, DESCRIPTION_CHARS_MAX);
    errors.extend(settings.field_mapping.map(check_mapping).unwrap_or_default());
    if settings.telegram_chat_id.is_some_and(|id| !is_chat_id(id)) {
        let message =
            "telegramChatId must be a chat's number, such as -1001234567890, or a public channel's @name";
        errors.push(FieldError::new("telegramChatId", "chat_id", message));
    }
    errors
}

/// Returns the error of a Telegram webhook without a chat.
pub fn check_chat(template: Template, telegram_chat_id: Option<&str>) -> Option<FieldError> {
    let message = "telegramChatId is needed when template is telegram";
    let is_missing = template == Template::Telegram && telegram_chat_id.is_none();
    is_missing.then(|| FieldError::new("telegramChatId", "required", message))
}

/// Matches [`crate::chat::telegram::CHAT_ID_PATTERN`].
fn is_chat_id(text: &str) -> bool {
    match text.strip_prefix('@') {
        Some(name) => {
            (4..=64).contains(&name.len())
                && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        }
        None => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            (1..=19).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
    }
}

fn check_url(url: &str) -> Option<FieldError> {
    let field_error = |code, message| Some(FieldError::new("url", code, message));
    let parsed =
        Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(parsed) = parsed.filter(|_| url.len() <= URL_BYTES_MAX) else {
        return field_error("url", "url must be a https address of at most 2,000 characters");
    };
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return field_error("credentials", "url must not contain a user name or password");
    }
    if parsed.host_str().is_some_and(teams::is_retired) {
        return field_error(
            "retired",
            "Microsoft has retired the connectors at webhook.office.com; in Teams, make a workflow \"When a Teams \
             webhook request is received\" and give its address",
        );
    }
    None
}

fn check_events(events: &[String]) -> Vec<FieldError> {
    if events.len() > EVENTS_MAX {
        let message = format!("events takes at most {EVENTS_MAX}");
        return vec![FieldError::new("events", "too_many", message)];
    }
    let is_unknown = |(_, event): &(usize, &String)| *event != "*" && !EVENTS.contains(&event.as_str());
    let complain = |(at, event)| {
        let message = format!("`{event}` is no event; events are: *, {}", EVENTS.join(", "));
        FieldError::new(format!("events[{at}]"), "unknown_event", message)
    };
    events.iter().enumerate().filter(is_unknown).map(complain).collect()
}

fn check_mapping(mapping: &BTreeMap<String, String>) -> Vec<FieldError> {
    if mapping.len() > MAPPED_MAX {
        let message = format!("fieldMapping takes at most {MAPPED_MAX} names");
        return vec![FieldError::new("fieldMapping", "too_many", message)];
    }
    let mut errors = Vec::new();
    for (name, new) in mapping {
        if name.chars().count() > MAPPED_CHARS_MAX || name.contains('\0') {
            let message =
                format!("names in fieldMapping have at most {MAPPED_CHARS_MAX} characters, none of them NUL");
            errors.push(FieldError::new("fieldMapping", "name", message));
        } else {
            check_length(&mut errors, &format!("fieldMapping.{name}"), new, 1, MAPPED_CHARS_MAX);
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::telegram;

    fn field_error(settings: &WebhookSettings<'_>) -> Option<(String, &'static str)> {
        let errors = check(settings);
        assert!(errors.len() <= 1, "{errors:?}");
        errors.into_iter().next().map(|one| (one.field, one.code))
    }

    fn of_url(url: &str) -> Option<&'static str> {
        field_error(&WebhookSettings { url: Some(url), ..WebhookSettings::default() }).map(|(_, code)| code)
    }

    #[test]
    fn a_url_is_http_without_credentials_and_not_retired() {
        assert_eq!(of_url("https://example.com/hook?a=b"), None);
        for wrong in ["", "example.com", "ftp://example.com", "mailto:a@b.co", "https://"] {
            assert_eq!(of_url(wrong), Some("url"), "{wrong}");
        }
        assert_eq!(of_url(&format!("https://a.test/{}", "x".repeat(1_986))), Some("url"));
        assert_eq!(of_url("https://me:secret@example.com"), Some("credentials"));
        assert_eq!(of_url("https://acme.webhook.office.com/webhookb2/x"), Some("retired"));
    }

    #[test]
    fn events_are_known_and_bounded() {
        let of = |events: &[&str]| {
            let events: Vec<_> = events.iter().map(ToString::to_string).collect();
            field_error(&WebhookSettings { events: Some(&events), ..WebhookSettings::default() })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["*", "form.closed"]), None);
        assert_eq!(of(&["*", "form.opened"]), Some(("events[1]".to_owned(), "unknown_event")));
        assert_eq!(of(&["*"; EVENTS_MAX]), None);
        assert_eq!(of(&["*"; EVENTS_MAX + 1]), Some(("events".to_owned(), "too_many")));
    }

    #[test]
    fn a_mapping_is_bounded_and_has_no_empty_names() {
        let of = |mapping: BTreeMap<String, String>| {
            field_error(&WebhookSettings { field_mapping: Some(&mapping), ..WebhookSettings::default() })
        };
        let one = |name: &str, new: &str| of([(name.to_owned(), new.to_owned())].into());
        assert_eq!(one("email", "contact"), None);
        assert_eq!(one(&"é".repeat(200), &"é".repeat(200)), None);
        assert_eq!(one("email", ""), Some(("fieldMapping.email".to_owned(), "required")));
        assert_eq!(one(&"x".repeat(201), "a"), Some(("fieldMapping".to_owned(), "name")));
        assert_eq!(one("email", &"x".repeat(201)), Some(("fieldMapping.email".to_owned(), "too_long")));
        let many = |count: usize| of((0..count).map(|at| (at.to_string(), "a".to_owned())).collect());
        assert_eq!((many(200), many(201)), (None, Some(("fieldMapping".to_owned(), "too_many"))));
    }

    #[test]
    fn a_telegram_chat_id_is_a_number_or_a_channel() {
        let missing = check_chat(Template::Telegram, None).unwrap();
        assert_eq!((missing.field.as_str(), missing.code), ("telegramChatId", "required"));
        assert_eq!(check_chat(Template::Slack, None), None);
        assert_eq!(check_chat(Template::Telegram, Some("42")), None);
        let pattern = regex::Regex::new(telegram::CHAT_ID_PATTERN).unwrap();
        for (id, is_right) in [
            ("-1001234567890", true),
            ("42", true),
            ("@my_channel", true),
            ("", false),
            ("-", false),
            ("@abc", false),
            ("@1abc", false),
            ("12a", false),
            ("@my-channel", false),
            ("12345678901234567890", false),
            ("1\n", false),
        ] {
            let field_error =
                field_error(&WebhookSettings { telegram_chat_id: Some(id), ..WebhookSettings::default() });
            assert_eq!(field_error.is_none(), is_right, "{id}");
            assert_eq!(pattern.is_match(id), is_right, "{id}");
        }
    }
}
