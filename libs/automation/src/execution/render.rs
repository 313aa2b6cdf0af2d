//! Evaluates the templates of a step with an effect.

use std::cell::RefCell;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::walk::Walk;
use super::{Effect, Effects, Escape, FindSource, Language, OutputBudget, Scope};
use crate::definition::{Action, FetchStep, FindIn, FindStep, RespondStep};
use crate::expressions::shorten;
use crate::expressions::values::text_of;

impl<E: Effects, L: Language> Walk<'_, E, L> {
    /// Returns the effect of a step; an error names the field.
    pub(super) fn render_effect(&self, action: &Action, scope: &Scope) -> Result<Effect, String> {
        let budget = RefCell::new(OutputBudget::default());
        let templates = Templates { language: self.language, scope, budget };
        Ok(match action {
            Action::Fetch(step) => templates.fetch(step)?,
            Action::Respond(step) => templates.respond(step)?,
            Action::CreateEntry(step) => {
                Effect::CreateEntry { page_id: step.page_id, data: templates.members("data", &step.data)? }
            }
            Action::DeleteEntry(step) => {
                let entry_id = templates.text("entryId", &step.entry_id, Escape::None)?;
                let entry_id = entry_id
                    .trim()
                    .parse()
                    .map_err(|_| format!("entryId: `{}` is not an id", shorten(&entry_id)))?;
                Effect::DeleteEntry { page_id: step.page_id, entry_id }
            }
            Action::UpdatePage(step) => Effect::UpdatePage(Box::new(templates.page_edit(step)?)),
            Action::Find(step) => templates.find(step)?,
            Action::CreateSubmission(step) => Effect::CreateSubmission {
                form_id: step.form_id,
                payload: templates.members("payload", &step.payload)?,
            },
            Action::SendWebhook(step) => Effect::SendWebhook {
                webhook_id: step.webhook_id,
                payload: templates.members("payload", &step.payload)?,
            },
            Action::Condition(_)
            | Action::Set(_)
            | Action::Transform(_)
            | Action::ForEach(_)
            | Action::Wait(_)
            | Action::Stop(_) => return Err("this step has no effect outside the run".to_owned()),
        })
    }
}

/// The templates of one step.
pub(super) struct Templates<'a, L> {
    language: &'a L,
    scope: &'a Scope,
    budget: RefCell<OutputBudget>,
}

impl<L: Language> Templates<'_, L> {
    pub(super) fn value(&self, field: &str, template: &Value, escape: Escape) -> Result<Value, String> {
        let rendered = self.language.render(template, escape, self.scope, &mut self.budget.borrow_mut());
        rendered.map_err(|error| format!("{field}: {error}"))
    }

    pub(super) fn text(&self, field: &str, template: &str, escape: Escape) -> Result<String, String> {
        self.value(field, &Value::String(template.to_owned()), escape).map(|value| text_of(&value))
    }

    fn members(&self, field: &str, templates: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let rendered = templates.iter().map(|(name, template)| {
            let value = self.value(&format!("{field}.{name}"), template, Escape::None)?;
            Ok((name.clone(), value))
        });
        rendered.collect()
    }

    fn headers(&self, templates: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let rendered = self.members("headers", templates)?;
        Ok(rendered.into_iter().map(|(name, value)| (name, Value::String(text_of(&value)))).collect())
    }

    pub(super) fn time(&self, field: &str, template: &str) -> Result<DateTime<Utc>, String> {
        let text = self.text(field, template, Escape::None)?;
        let time = DateTime::parse_from_rfc3339(text.trim());
        time.map(|time| time.to_utc())
            .map_err(|_| format!("{field}: `{}` is not an RFC 3339 timestamp", shorten(&text)))
    }

    fn fetch(&self, step: &FetchStep) -> Result<Effect, String> {
        let headers = self.headers(&step.headers)?;
        let body = self.body(step.body.as_ref(), &headers)?;
        let url = self.text("url", &step.url, Escape::Url)?;
        Ok(Effect::Fetch { method: step.method.as_str(), url, headers, body })
    }

    fn respond(&self, step: &RespondStep) -> Result<Effect, String> {
        let headers = self.headers(&step.headers)?;
        let body = self.body(step.body.as_ref(), &headers)?;
        Ok(Effect::Respond { status: step.status, headers, body })
    }

    /// A text is escaped for the format in which it is sent; in an object or a list, JSON does that.
    fn body(&self, template: Option<&Value>, headers: &Map<String, Value>) -> Result<Option<Value>, String> {
        let Some(template) = template else { return Ok(None) };
        let escape = match template {
            Value::String(text) => body_escape(text, headers),
            // JSON under the name of HTML is read as HTML.
            _ if content_type(headers).contains("html") => Escape::Html,
            _ => Escape::None,
        };
        self.value("body", template, escape).map(Some)
    }

    fn find(&self, step: &FindStep) -> Result<Effect, String> {
        let missing = |field: &str| format!("{field}: it is required");
        let source = match step.source {
            FindIn::Entries => {
                FindSource::Entries { page_id: step.page_id.ok_or_else(|| missing("pageId"))? }
            }
            FindIn::Submissions => {
                FindSource::Submissions { form_id: step.form_id.ok_or_else(|| missing("formId"))? }
            }
        };
        let since = step.since.as_deref().map(|since| self.time("since", since)).transpose()?;
        Ok(Effect::Find {
            source,
            filter: self.members("where", &step.filter)?,
            since,
            limit: step.limit.clamp(1, 100),
        })
    }
}

/// Returns the content type that a step sets, in lowercase; empty if it sets none.
fn content_type(headers: &Map<String, Value>) -> String {
    let given = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    given.and_then(|(_, value)| value.as_str()).unwrap_or_default().to_ascii_lowercase()
}

fn body_escape(text: &str, headers: &Map<String, Value>) -> Escape {
    let given = content_type(headers);
    let begins_as_json = matches!(text.trim_start().as_bytes(), [b'[', ..])
        || text.trim_start().starts_with('{') && !text.trim_start().starts_with("{{");
    if given.contains("json") || given.is_empty() && begins_as_json {
        Escape::Json
    } else if given.contains("html") {
        Escape::Html
    } else if given.contains("x-www-form-urlencoded") {
        Escape::Url
    } else {
        Escape::None
    }
}
