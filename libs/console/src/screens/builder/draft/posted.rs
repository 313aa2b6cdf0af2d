//! The draft that a page posted.

use std::collections::BTreeSet;

use super::{Draft, Question, SETTINGS};
use crate::form_submission::FormSubmission;

/// The most questions that are read. The API accepts fewer, and says so.
const QUESTIONS_MAX: usize = 120;

impl Draft {
    /// Reads the posted inputs. A question without a name gets one.
    pub(in crate::screens::builder) fn posted(form: &FormSubmission) -> Self {
        let mut draft = Self::default();
        for (name, value) in form.fields() {
            let value = value.replace("\r\n", "\n");
            if let Some((at, part)) = question_part(name) {
                if draft.questions.len() <= at {
                    draft.questions.resize_with(at + 1, Question::default);
                }
                draft.questions[at].set(part, value);
            } else if name == "webhookIds[]" {
                let ids = draft.webhook_ids.get_or_insert_default();
                ids.extend(Some(value).filter(|id| !id.is_empty()));
            } else if let Some(setting) = SETTINGS.iter().find(|setting| **setting == name) {
                draft.settings.insert(setting, value);
            }
        }
        // Indices that no input had.
        draft.questions.retain(|question| !question.get("type").is_empty());
        draft.with_names()
    }

    /// Names the questions without a name.
    pub(super) fn with_names(mut self) -> Self {
        let mut taken: BTreeSet<String> =
            self.questions.iter().map(|question| question.get("name").to_owned()).collect();
        for (at, question) in self.questions.iter_mut().enumerate() {
            if question.get("name").trim().is_empty() {
                let name = question.new_name(at + 1, &taken);
                taken.insert(name.clone());
                question.set("name", name);
            }
        }
        self
    }
}

/// Returns the index and the part that an input like `fields[3].label` is for.
pub(in crate::screens::builder) fn question_part(name: &str) -> Option<(usize, &str)> {
    let (index, rest) = name.strip_prefix("fields[")?.split_once(']')?;
    let at = index.parse().ok().filter(|at| *at < QUESTIONS_MAX)?;
    Some((at, rest.strip_prefix('.')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_questions_by_index_and_settings_by_name() {
        let form = FormSubmission::parse(
            "account=a&name=Contact&fields[1].type=email&fields[1].label=Mail&fields[0].type=text&fields[0].label=Mail\
             &fields[0].owner=x&spam.honeypot=on&webhookIds[]=&webhookIds[]=w&admin=1&fields[7].label=no+type\
             &fields[99999999].type=text",
        );
        let draft = Draft::posted(&form);
        let names: Vec<_> = draft.questions.iter().map(|question| question.get("name")).collect();
        assert_eq!(names, ["mail", "mail_2"]);
        assert_eq!(draft.questions[0].get("owner"), "");
        assert_eq!(draft.settings["name"], "Contact");
        assert!(draft.settings.keys().all(|name| ["name", "spam.honeypot"].contains(name)));
        assert_eq!(draft.webhook_ids, Some(vec!["w".to_owned()]));
        assert_eq!(Draft::posted(&FormSubmission::parse("name=x")).webhook_ids, None);
    }
}
