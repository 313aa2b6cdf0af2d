//! The reference of the API for people and programs, made of the catalog: the schema, the guide and the pages.
//!
//! Everything is public and the same for every caller, so each text is made once, by the first request for it.

mod cached_text;
mod curl;
mod example;
mod facts;
mod fields;
mod guide;
mod pages;
mod schema;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub(crate) use cached_text::CachedText;
use example::{Example, Listed};
use pages::Templates;
pub(crate) use schema::SchemaResponse;
use web::{Code, Problem};

use crate::catalog::{CATEGORIES, Catalog};

/// The texts of the reference.
#[derive(Debug)]
pub(crate) struct Reference {
    base_url: String,
    templates: Templates,
    listed: Vec<Listed>,
    catalog: OnceLock<Arc<Catalog>>,
    examples: OnceLock<Vec<Example>>,
    guide: OnceLock<CachedText>,
    /// By category; the empty text is the whole API.
    schemas: HashMap<&'static str, OnceLock<CachedText>>,
    pages: HashMap<&'static str, OnceLock<CachedText>>,
}

impl Reference {
    /// Creates the reference of an installation.
    pub(crate) fn new(base_url: &str) -> anyhow::Result<Self> {
        let all = || CATEGORIES.into_iter().chain([""]).map(|name| (name, OnceLock::new())).collect();
        Ok(Self {
            base_url: base_url.to_owned(),
            templates: Templates::new()?,
            listed: example::parse()?,
            catalog: OnceLock::new(),
            examples: OnceLock::new(),
            guide: OnceLock::new(),
            schemas: all(),
            pages: all(),
        })
    }

    /// Sets the operations to describe, which the router knows when it is built. Another router has the same ones.
    pub(crate) fn describe(&self, catalog: &Arc<Catalog>) {
        self.catalog.get_or_init(|| Arc::clone(catalog));
    }

    fn examples(&self, catalog: &Catalog) -> &[Example] {
        self.examples.get_or_init(|| example::read(&self.listed, catalog))
    }

    /// The structured description of a category; of the whole API for the empty text.
    pub(crate) fn schema(&self, category: &str) -> Result<&CachedText, Problem> {
        let (Some(catalog), Some(schema)) = (self.catalog.get(), self.schemas.get(category)) else {
            return Err(Problem::nothing_changed());
        };
        made_once(schema, || {
            let examples = self.examples(catalog);
            let schema = SchemaResponse::new(catalog, examples, &self.base_url, category);
            Ok(CachedText::json(serde_json::to_string(&schema)?))
        })
    }

    /// `/llms.txt`.
    pub(crate) fn guide(&self) -> &CachedText {
        self.guide.get_or_init(|| CachedText::markdown(guide::write(&self.base_url)))
    }

    /// The page of a category; the first page for the empty text. `None` if there is no such category.
    pub(crate) fn page(&self, category: &str) -> Result<Option<&CachedText>, Problem> {
        let (Some(catalog), Some(page)) = (self.catalog.get(), self.pages.get(category)) else {
            return Ok(None);
        };
        let made = made_once(page, || {
            let examples = self.examples(catalog);
            let html = self.templates.render(catalog, examples, &self.base_url, category)?;
            Ok(CachedText::html(html, self.templates.policy()))
        });
        made.map(Some)
    }
}

/// Makes a text by the first request for it. If that fails, the next request tries again.
fn made_once(
    text: &OnceLock<CachedText>,
    make: impl FnOnce() -> anyhow::Result<CachedText>,
) -> Result<&CachedText, Problem> {
    if let Some(made) = text.get() {
        return Ok(made);
    }
    let made = make().map_err(|error| {
        tracing::error!(%error, "failed to make a text of the reference");
        Problem::new(Code::Internal, "this part of the reference could not be made")
    })?;
    Ok(text.get_or_init(|| made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_can_not_be_made_is_a_problem_and_not_kept() {
        let mut reference = Reference::new("http://localhost:8080").unwrap();
        reference.describe(&Arc::new(Catalog::new(&crate::api::document())));
        let works = std::mem::replace(&mut reference.templates, Templates::empty());
        assert_eq!(reference.page("forms").unwrap_err().code(), Code::Internal);
        assert!(reference.page("cats").unwrap().is_none());
        reference.templates = works;
        assert!(reference.page("forms").unwrap().is_some());
    }
}
