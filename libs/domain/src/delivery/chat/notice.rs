//! The content of a chat message, independent of the platform.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::fit::EMPTY;
use crate::webhooks::{AUTOMATION_MESSAGE, FieldNames};

/// An event for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Title, such as `New submission: Contact`.
    pub title: String,
    pub at: Option<DateTime<Utc>>,
    /// A sentence, if there are no answers.
    pub text: Option<String>,
    /// Names, as the webhook maps them, or the labels of the form, and answers.
    pub fields: Vec<(String, String)>,
}

impl Notice {
    /// Parses the body of a delivery: `{type, timestamp, data: {formName, fields}}`. Missing members are omitted.
    ///
    /// Of the message of an automation, `{type, timestamp, data: {payload}}`, the members `title` and `text` (or `message`)
    /// are the title and the sentence, the others are fields.
    pub fn read(event: &Value, names: FieldNames<'_>) -> Self {
        let at = event["timestamp"].as_str().and_then(|at| at.parse().ok());
        let data = &event["data"];
        if event["type"] == AUTOMATION_MESSAGE {
            return Self { at, ..Self::of_message(&data["payload"], names) };
        }
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
        let text = data["message"].as_str().map(str::to_owned);
        Self { title, at, text, fields: display_fields(data["fields"].as_object(), names) }
    }

    fn of_message(payload: &Value, names: FieldNames<'_>) -> Self {
        let text_of = |name: &str| payload[name].as_str().filter(|text| !text.trim().is_empty());
        let title = text_of("title");
        let (text_name, text) = match (text_of("text"), text_of("message")) {
            (Some(text), _) => ("text", Some(text)),
            (None, message) => ("message", message),
        };
        let mut fields = payload.as_object().cloned().unwrap_or_default();
        let shown = [title.map(|_| "title"), text.map(|_| text_name)];
        fields.retain(|name, _| !shown.contains(&Some(name.as_str())));
        Self {
            title: title.unwrap_or("Message from an automation").to_owned(),
            at: None,
            text: text.map(str::to_owned),
            fields: display_fields(Some(&fields), names),
        }
    }

    /// Returns the time for display.
    pub(super) fn when(&self) -> String {
        self.at.map(|at| at.format("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default()
    }
}

fn display_fields(fields: Option<&Map<String, Value>>, names: FieldNames<'_>) -> Vec<(String, String)> {
    let labelled = fields.map(|fields| names.label(fields)).unwrap_or_default();
    labelled.into_iter().map(|(label, value)| (label, display(&value))).collect()
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
        let notice = Notice::read(&event, FieldNames { mapping: mapping.as_object(), form: &[] });
        assert_eq!(
            (notice.title.as_str(), notice.when().as_str()),
            ("New submission: Contact", "2026-11-21 09:05 UTC")
        );
        let displayed: Vec<_> = notice.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(displayed, ["E-mail=a@b.co", "news=yes", "sizes=S, M", "n=1.5", "none=–", "blank=–"]);
    }

    #[test]
    fn the_message_of_an_automation_has_its_title_its_text_and_fields() {
        let read = |payload: Value| {
            let event = json!({"type": "automation.message", "timestamp": "2026-11-21T09:05:07Z",
                               "data": {"automationId": "a", "runId": "r", "payload": payload}});
            let mapping = json!({"email": "E-mail"});
            Notice::read(&event, FieldNames { mapping: mapping.as_object(), form: &[] })
        };
        let notice =
            read(json!({"title": "New lead", "text": "From the form", "email": "a@b.co", "n": {"x": 1}}));
        assert_eq!((notice.title.as_str(), notice.text.as_deref()), ("New lead", Some("From the form")));
        assert_eq!(notice.when(), "2026-11-21 09:05 UTC");
        let fields: Vec<_> = notice.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(fields, ["E-mail=a@b.co", "n={\"x\":1}"]);
        let plain = read(json!({"message": "Down", "text": " ", "title": 5}));
        assert_eq!(
            (plain.title.as_str(), plain.text.as_deref()),
            ("Message from an automation", Some("Down"))
        );
        assert_eq!(plain.fields.len(), 2);
        assert_eq!(read(json!({})).fields, []);
    }

    #[test]
    fn missing_members_are_omitted() {
        let notice = Notice::read(
            &json!({"type": "webhook.ping", "data": {"message": "Hello"}}),
            FieldNames::default(),
        );
        assert_eq!((notice.title.as_str(), notice.text.as_deref()), ("Test of your webhook", Some("Hello")));
        assert!(notice.fields.is_empty() && notice.when().is_empty());
        assert_eq!(Notice::read(&json!(null), FieldNames::default()).title, "");
    }
}
