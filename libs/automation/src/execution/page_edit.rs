//! Evaluates the templates of an `update_page` step.

use serde_json::Value;

use super::render::Templates;
use super::transform::type_of;
use super::{Escape, Language, PageEdit};
use crate::definition::UpdatePageStep;

impl<L: Language> Templates<'_, L> {
    pub(super) fn page_edit(&self, step: &UpdatePageStep) -> Result<PageEdit, String> {
        let text = |field, template: &Option<String>, escape| {
            template.as_deref().map(|template| self.text(field, template, escape)).transpose()
        };
        let publish_at = match &step.publish_at {
            Some(Some(template)) => Some(Some(self.time("publishAt", template)?)),
            Some(None) => Some(None),
            None => None,
        };
        let since = step.if_unmodified_since.as_deref();
        Ok(PageEdit {
            page_id: step.page_id,
            slug: text("slug", &step.slug, Escape::None)?,
            subdomain_id: step.subdomain_id,
            upsert: step.upsert,
            title: text("title", &step.title, Escape::None)?,
            html: text("html", &step.html, Escape::Html)?,
            css: step.css.clone(),
            entry_template: step.entry_template.clone(),
            is_published: step.is_published.as_ref().map(|template| self.flag(template)).transpose()?,
            publish_at,
            if_unmodified_since: since.map(|since| self.time("ifUnmodifiedSince", since)).transpose()?,
            folder_id: step.folder_id,
        })
    }

    fn flag(&self, template: &Value) -> Result<bool, String> {
        match self.value("isPublished", template, Escape::None)? {
            Value::Bool(flag) => Ok(flag),
            other => Err(format!("isPublished: expected true or false, got {}", type_of(&other))),
        }
    }
}
