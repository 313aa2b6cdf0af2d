//! A question of a draft: the text of each of its inputs, by the last part of the input's name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

const TEXTS: &[&str] = &["text", "email", "textarea", "url", "tel", "hidden"];
const WRITTEN: &[&str] = &["text", "email", "textarea", "url", "tel", "number", "select"];
const SEEN: &[&str] = &[
    "text",
    "email",
    "textarea",
    "url",
    "tel",
    "number",
    "select",
    "multiselect",
    "checkbox",
    "date",
    "file",
];

/// Each part that only some types have, with these types. The API refuses it for others.
const PARTS: &[(&str, &[&str])] = &[
    ("help", SEEN),
    ("placeholder", WRITTEN),
    ("options", &["select", "multiselect"]),
    ("display", &["select", "number"]),
    ("minLength", TEXTS),
    ("maxLength", TEXTS),
    ("pattern", TEXTS),
    ("patternHint", TEXTS),
    ("min", &["number"]),
    ("max", &["number"]),
    ("accept", &["file"]),
    ("maxFileSize", &["file"]),
];
/// Parts that every type has.
const COMMON: [&str; 7] = ["type", "label", "name", "required", "unique", "showIf.field", "showIf.equals"];
/// The longest name that is made from a label.
const NAME_CHARS: usize = 40;

/// A question.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(in crate::screens::builder) struct Question(BTreeMap<&'static str, String>);

impl Question {
    /// Returns a new question, which has all that its type needs.
    pub(super) fn new(kind: &str, number: usize) -> Self {
        let mut question = Self::default();
        question.set("type", kind.to_owned());
        question.set("label", format!("Question {number}"));
        if question.has("options") {
            question.set("options", "First option\nSecond option".to_owned());
        }
        question
    }

    /// Returns the names of all parts.
    pub(super) fn parts() -> impl Iterator<Item = &'static str> {
        COMMON.into_iter().chain(PARTS.iter().map(|(part, _)| *part))
    }

    pub(super) fn get(&self, part: &str) -> &str {
        self.0.get(part).map_or("", String::as_str)
    }

    /// Sets a part; unknown ones are ignored.
    pub(super) fn set(&mut self, part: &str, value: String) {
        if let Some(part) = Self::parts().find(|known| *known == part) {
            self.0.insert(part, value);
        }
    }

    pub(in crate::screens::builder) fn is_on(&self, part: &str) -> bool {
        matches!(self.get(part), "on" | "true")
    }

    /// Returns whether a question of this type has the part.
    pub(super) fn has(&self, part: &str) -> bool {
        let types = PARTS.iter().find(|(name, _)| *name == part).map(|(_, types)| *types);
        types.is_none_or(|types| types.contains(&self.get("type")))
    }

    /// Returns the options, one a line.
    pub(super) fn options(&self) -> impl Iterator<Item = &str> {
        self.get("options").lines().map(str::trim).filter(|line| !line.is_empty())
    }

    /// Returns a name made from the label that is not taken.
    pub(super) fn new_name(&self, number: usize, taken: &BTreeSet<String>) -> String {
        let mut name = String::new();
        for char in self.get("label").chars().take(NAME_CHARS) {
            match char.to_ascii_lowercase() {
                letter if letter.is_ascii_alphanumeric() => name.push(letter),
                _ if !name.is_empty() && !name.ends_with('_') => name.push('_'),
                _ => {}
            }
        }
        let name = name.trim_end_matches('_');
        let name = if name.is_empty() { format!("question_{number}") } else { name.to_owned() };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        names.find(|name| !taken.contains(name)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_from_the_label_and_is_not_taken() {
        let named = |label: &str, taken: &[&str]| {
            let mut question = Question::new("text", 3);
            question.set("label", label.to_owned());
            question.new_name(3, &taken.iter().map(ToString::to_string).collect())
        };
        assert_eq!(named("Your e-mail?", &[]), "your_e_mail");
        assert_eq!(named("Your e-mail?", &["your_e_mail", "your_e_mail_2"]), "your_e_mail_3");
        assert_eq!(named("お名前", &[]), "question_3");
        assert_eq!(named("<script>alert(1)</script>", &[]), "script_alert_1_script");
    }

    #[test]
    fn a_type_has_its_parts_only() {
        let has = |kind: &str, part: &str| Question::new(kind, 1).has(part);
        assert!(has("text", "pattern") && has("number", "min") && has("select", "options"));
        assert!(!has("number", "pattern") && !has("text", "options") && !has("hidden", "help"));
        assert!(has("hidden", "label") && has("file", "showIf.field"));
        assert_eq!(Question::new("multiselect", 1).options().count(), 2);
    }
}
