//! The draft of a stored form.

use chrono::Timelike;
use chrono_tz::Tz;
use serde_json::Value;

use super::{Draft, Question, SETTINGS};
use crate::formatting::times;

impl Draft {
    /// Reads a form of the API. Times are those of the wall clock in `zone`, as the API reads them.
    pub(in crate::screens::builder) fn from_form(form: &Value, zone: Tz) -> Self {
        let mut draft = Self::default();
        for setting in SETTINGS {
            let value = text_of(at(form, setting));
            let value = if setting == "closesAt" { local_time(&value, zone) } else { value };
            draft.settings.insert(setting, value);
        }
        let unique = form["uniqueBy"].as_array().map_or(&[][..], Vec::as_slice);
        for field in form["fields"].as_array().into_iter().flatten() {
            let mut question = Question::default();
            for part in Question::parts() {
                question.set(part, text_of(at(field, part)));
            }
            if unique.contains(&field["name"]) {
                question.set("unique", "on".to_owned());
            }
            draft.questions.push(question);
        }
        let ids = form["webhookIds"].as_array();
        draft.webhook_ids = ids.map(|ids| ids.iter().map(text_of).collect());
        draft
    }
}

/// Returns the member at a path of names with dots between them.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, name| &value[name])
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) | Value::Object(_) => String::new(),
        Value::Bool(true) => "on".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Number(number) => {
            // 5.0 is 5 to people.
            let whole = number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 1e15);
            whole.map_or_else(|| number.to_string(), |value| format!("{value:.0}"))
        }
    }
}

/// Returns an instant as `datetime-local` inputs write it.
fn local_time(instant: &str, zone: Tz) -> String {
    times::parse(instant).map_or_else(String::new, |at| {
        let local = at.with_timezone(&zone);
        local.format(if local.second() == 0 { "%Y-%m-%dT%H:%M" } else { "%Y-%m-%dT%H:%M:%S" }).to_string()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_those_of_the_account_and_numbers_those_of_people() {
        let form = json!({ "name": "F", "closesAt": "2030-06-30T16:00:00Z", "maxSubmissions": null,
            "publicResults": true, "spam": { "minSeconds": 2, "honeypot": false }, "uniqueBy": ["n"],
            "fields": [{ "type": "number", "name": "n", "label": "N", "min": 0.0, "max": 2.5, "required": true,
                "showIf": { "field": "x", "equals": true } },
                { "type": "select", "name": "s", "label": "S", "options": ["a", "b"] }] });
        let draft = Draft::from_form(&form, Tz::Europe__Berlin);
        let setting = |name: &str| draft.settings[name].as_str();
        assert_eq!(setting("closesAt"), "2030-06-30T18:00");
        assert_eq!(
            [setting("publicResults"), setting("spam.honeypot"), setting("maxSubmissions")],
            ["on", "", ""]
        );
        let part = |name: &str| draft.questions[0].get(name);
        assert_eq!([part("min"), part("max"), part("required"), part("unique")], ["0", "2.5", "on", "on"]);
        assert_eq!([part("showIf.field"), part("showIf.equals")], ["x", "on"]);
        assert_eq!(draft.questions[1].get("options"), "a\nb");
    }
}
