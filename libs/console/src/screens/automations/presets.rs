//! Automations to begin with: each works as soon as it is made.

use serde::Serialize;
use serde_json::{Value, json};

use crate::form_submission::FormSubmission;

/// An automation to begin with.
#[derive(Debug, Serialize)]
pub(super) struct Preset {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    description: &'static str,
    /// Whether it asks for a form and an address.
    has_fields: bool,
    /// Paths of the definition that come from an input, with its name.
    #[serde(skip)]
    inputs: &'static [(&'static str, &'static str)],
    #[serde(skip)]
    definition: fn(&str, &str) -> Value,
}

/// All presets.
pub(super) static PRESETS: [Preset; 3] = [
    Preset {
        id: "answer",
        name: "Answer a web request",
        description: "Gets an address. Whatever is posted there comes back as JSON, and is in the log of its run.",
        has_fields: false,
        inputs: &[],
        definition: |_, _| {
            let body = json!({ "received": "{{ trigger.payload }}", "run": "{{ run.id }}" });
            json!({ "trigger": { "type": "http" }, "steps": [{ "id": "answer", "type": "respond", "body": body }] })
        },
    },
    Preset {
        id: "notify",
        name: "Call an address on each submission",
        description: "Posts each submission of a form to an address, and tries three more times if that fails.",
        has_fields: true,
        inputs: &[("trigger.formId", "notify_form"), ("steps[0].url", "notify_url")],
        definition: |form_id, url| {
            let body = json!({ "formId": "{{ trigger.formId }}", "submission": "{{ trigger.payload }}" });
            let call = json!({ "id": "call", "type": "fetch", "method": "POST", "url": url, "body": body,
                "retry": { "max": 3 } });
            json!({ "trigger": { "type": "form_submission", "formId": form_id }, "steps": [call] })
        },
    },
    Preset {
        id: "daily",
        name: "Count submissions every morning",
        description: "At 8:00 posts to an address how many submissions a form got since the morning before, up to 100.",
        has_fields: true,
        inputs: &[("steps[0].formId", "daily_form"), ("steps[1].url", "daily_url")],
        definition: |form_id, url| {
            let find = json!({ "id": "found", "type": "find", "in": "submissions", "formId": form_id,
                "since": "{{ date_add(run.startedAt, -1, 'days') }}", "limit": 100 });
            let call = json!({ "id": "call", "type": "fetch", "method": "POST", "url": url,
                "body": { "submissions": "{{ steps.found.count }}" }, "retry": { "max": 3 } });
            json!({ "trigger": { "type": "schedule", "cron": "0 8 * * *" }, "steps": [find, call] })
        },
    },
];

impl Preset {
    pub(super) fn find(id: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.id == id)
    }

    /// Returns the body that creates it. `suffix` makes its slug unique.
    pub(super) fn body(&self, form: &FormSubmission, suffix: &str) -> Value {
        let input = |noun: &str| form.get(&format!("{}_{noun}", self.id)).unwrap_or_default();
        let mut body = (self.definition)(input("form"), input("url"));
        body["name"] = json!(self.name);
        body["slug"] = json!(format!("{}-{suffix}", self.id));
        body
    }

    /// Returns the input that a path of the definition comes from.
    pub(super) fn input_of(&self, path: &str) -> Option<&'static str> {
        self.inputs.iter().find(|(found, _)| *found == path).map(|(_, input)| *input)
    }
}
