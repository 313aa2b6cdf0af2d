//! A form as the builder shows it: the text of each input, by its name.
//!
//! Names of inputs are the paths of the API's body, so that its problems name them. Without a script every change of the
//! questions is a post of the whole form, which changes this and shows it again; nothing is stored before it is saved.

mod body;
mod change;
mod from_form;
mod posted;
mod question;

use std::collections::BTreeMap;

use serde::Serialize;

pub(super) use change::Change;
pub(super) use posted::question_part;
use question::Question;

/// The settings with an input of their own.
const SETTINGS: [&str; 19] = [
    "name",
    "successMessage",
    "submitLabel",
    "redirectUrl",
    "closesAt",
    "maxSubmissions",
    "publicResults",
    "notifyEmail",
    "folderId",
    "autoEntryPageId",
    "unknownFields",
    "spam.honeypot",
    "spam.minSeconds",
    "spam.proofOfWork",
    "spam.perMinute",
    "spam.perDay",
    "appearance.accent",
    "appearance.radius",
    "appearance.logoAssetId",
];

/// A form in the builder.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Draft {
    settings: BTreeMap<&'static str, String>,
    /// The linked webhooks. `None` if the page could not list them, so that saving leaves them as they are.
    #[serde(rename = "webhookIds")]
    webhook_ids: Option<Vec<String>>,
    questions: Vec<Question>,
}

impl Draft {
    pub(super) fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Returns an empty form with one question.
    pub(super) fn empty() -> Self {
        let form =
            serde_json::json!({ "spam": { "honeypot": true, "minSeconds": 2 }, "unknownFields": "ignore" });
        let mut draft = Self::from_form(&form, chrono_tz::Tz::UTC);
        draft.questions.push(Question::new("text", 1));
        draft.with_names()
    }

    /// Returns the draft of a new form with the questions of a preset.
    pub(super) fn from_preset(preset: &serde_json::Value) -> Self {
        let empty = Self::empty();
        let of_preset = Self::from_form(preset, chrono_tz::Tz::UTC);
        let name = of_preset.settings.get("name").cloned().unwrap_or_default();
        Self { questions: of_preset.questions, ..empty }.with_setting("name", name)
    }

    /// Returns the draft of a copy: a new form like this one, which does not close.
    pub(super) fn into_copy(self) -> Self {
        let name = self.settings.get("name").map(|name| format!("{name} (copy)")).unwrap_or_default();
        self.with_setting("name", name).with_setting("closesAt", String::new())
    }

    fn with_setting(mut self, name: &'static str, value: String) -> Self {
        self.settings.insert(name, value);
        self
    }
}
