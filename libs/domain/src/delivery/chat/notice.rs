//! The content of a chat message, independent of the platform.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::fit::EMPTY;
use crate::webhooks::field_mapping::map_fields;

/// An event for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Title, such as `New submission: Contact`.
    pub title: String,
    pub at: Option<DateTime<Utc>>,
    /// A sentence, if there are no answers.
    pub text: Option<String>,
    /// Names, as the webhook maps them, and answers.
    pub fields: Vec<(String, String)>,
}

impl Notice {
    /// Parses the body of a delivery: `{type, timestamp, data: {formName, fields}}`. Missing members are omitted.
    pub fn read(event: &Value, mapping: Option<&Map<String, Value>>) -> Self {
        let data = &event["data"];
        let what = match event["type"].as_str().unwrap_or_default() {
            "submission.created" => "New submission",
            "submission.updated" => "Submission changed",
            "submission.deleted" => "Submission deleted",
            "form.closed" => "Form closed",
            "webhook.ping" => "Test of your webhook",
            other => other,
        };
        let title = match data["formName"].as_str() {
            Some(form) => format!("{what}: {form}"),
            None => what.to_owned(),
        };
        let fields = data["fields"].as_object().map(|fields| map_fields(fields, mapping));
        let at = event["timestamp"].as_str().and_then(|at| at.parse().ok());
        let text = data["message"].as_str().map(str::to_owned);
        let fields = fields.unwrap_or_default();
        Self {
            title,
            at,
            text,
            fields: fields.iter().map(|(name, value)| (name.clone(), display(value))).collect(),
        }
    }

    /// Returns the time for display.
    pub(super) fn when(&self) -> String {
        self.at.map(|at| at.format("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default()
    }
}

/// Formats an answer for display.
fn display(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.trim().to_owned(),
        Value::Array(values) => values.iter().map(display).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    if text.is_empty() { EMPTY.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_formatted_under_their_mapped_names() {
        let event = json!({
            "type": "submission.created",
            "timestamp": "2026-11-21T09:05:07.123Z",
            "data": {"formName": "Contact", "fields": {
                "email": "a@b.co", "news": true, "sizes": ["S", "M"], "n": 1.5, "none": null, "blank": "  ",
            }},
        });
        let mapping = json!({"email": "E-mail"});
        let notice = Notice::read(&event, mapping.as_object());
        assert_eq!(
            (notice.title.as_str(), notice.when().as_str()),
            ("New submission: Contact", "2026-11-21 09:05 UTC")
        );
        let displayed: Vec<_> = notice.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(displayed, ["E-mail=a@b.co", "news=yes", "sizes=S, M", "n=1.5", "none=–", "blank=–"]);
    }

    #[test]
    fn missing_members_are_omitted() {
        let notice = Notice::read(&json!({"type": "webhook.ping", "data": {"message": "Hello"}}), None);
        assert_eq!((notice.title.as_str(), notice.text.as_deref()), ("Test of your webhook", Some("Hello")));
        assert!(notice.fields.is_empty() && notice.when().is_empty());
        assert_eq!(Notice::read(&json!(null), None).title, "");
    }
}
