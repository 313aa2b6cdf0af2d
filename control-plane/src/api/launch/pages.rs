//! The pages of a launch: checks all of them, then creates or updates them by their slugs.

use std::collections::{BTreeMap, BTreeSet};

use contract::Change;
use domain::FieldError;
use domain::pages;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::pages::{PageUpsert, UpsertOutcome};
use store::subdomains::Subdomain;
use uuid::Uuid;
use web::Problem;

use crate::App;
use crate::api::pages::checks::check_count;
use crate::call::Call;

/// Bytes of pages that are written in one statement.
const STATEMENT_BYTES: usize = 2 << 20;
/// Changed pages that are announced one by one. Of more, the whole site is announced as changed.
const ANNOUNCED_MAX: usize = 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LaunchPage {
    /// Path of the page on its site: `index` is the root.
    #[schemars(length(min = 2, max = 200), regex(pattern = pages::SLUG_PATTERN))]
    slug: String,
    /// Title of the page.
    #[schemars(length(min = 1, max = pages::TITLE_CHARS_MAX))]
    title: String,
    /// The whole HTML document, at most 512 KB.
    #[schemars(length(max = pages::MAX_HTML_BYTES))]
    html: String,
    /// Style sheet, at most 128 KB. Null removes it; if absent, an existing page keeps its own.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = pages::MAX_CSS_BYTES))]
    css: Option<Option<String>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LaunchedPage {
    id: Uuid,
    /// Path of the page on its site: `index` is the root.
    slug: String,
    /// What the launch did to the page.
    pub(super) status: LaunchedPageStatus,
    /// URL on its own site, the one to share.
    subdomain_url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum LaunchedPageStatus {
    Created,
    Updated,
    Unchanged,
}

/// Returns what is wrong with the pages.
pub(super) fn check_pages(pages: &[LaunchPage]) -> Result<Vec<FieldError>, Problem> {
    check_count("pages", pages.len())?;
    let (mut errors, mut slugs) = (Vec::new(), BTreeSet::new());
    for (at, page) in pages.iter().enumerate() {
        let mut of_page = pages::check_slug(&page.slug);
        let css = page.css.as_ref().and_then(Option::as_deref);
        of_page.extend(pages::check_content(Some(&page.title), Some(&page.html), css, None));
        if !slugs.insert(&page.slug) {
            let message = format!("slug `{}` occurs twice; a page has one content", page.slug);
            of_page.push(FieldError::new("slug", "duplicate", message));
        }
        errors.extend(of_page.into_iter().map(|error| FieldError {
            field: format!("pages[{at}].{}", error.field),
            message: format!("pages[{at}].{}", error.message),
            ..error
        }));
    }
    Ok(errors)
}

/// The pages of a launch, checked against those of its subdomain. The account's usage must stay locked until they are
/// written.
pub(super) struct PagePlan<'a> {
    subdomain: &'a Subdomain,
    pages: Vec<LaunchPage>,
    /// Folder of the new pages.
    folder_id: Option<Uuid>,
    /// Paths of the deployed files that existing pages show, by slug.
    existing: BTreeMap<String, Option<String>>,
}

impl<'a> PagePlan<'a> {
    /// Checks that the caller may update the pages that exist and create the others.
    pub(super) async fn make<S>(
        call: &Call<S>,
        tx: &mut store::Tx,
        subdomain: &'a Subdomain,
        pages: Vec<LaunchPage>,
    ) -> Result<Self, Problem> {
        let slugs: Vec<&str> = pages.iter().map(|page| page.slug.as_str()).collect();
        let found = store::pages::list_by_slugs(tx, call.account_id, subdomain.id, &slugs).await?;
        let ids: Vec<Uuid> = found.iter().map(|page| page.id).collect();
        call.check_ids(tx, Resource::Pages, &ids).await?;
        let existing: BTreeMap<String, Option<String>> =
            found.into_iter().map(|page| (page.slug, page.path)).collect();
        let folder_id = match existing.len() < pages.len() {
            true => call.new_resource_folder(tx, Resource::Pages, None).await?,
            false => None,
        };
        Ok(Self { subdomain, pages, folder_id, existing })
    }

    /// Returns how many pages will be created.
    pub(super) fn created(&self) -> usize {
        self.pages.len() - self.existing.len()
    }

    /// Writes the pages, and adds their changes to `changes`.
    pub(super) async fn write<S>(
        self,
        call: &Call<S>,
        app: &App,
        tx: &mut store::Tx,
        changes: &mut Vec<Change>,
    ) -> Result<Vec<LaunchedPage>, Problem> {
        let Self { subdomain, pages, folder_id, mut existing } = self;
        let now = app.clock.now();
        // Lists show pages of the same time in the order of their ids: in that of the request.
        let mut ids: Vec<Uuid> = pages.iter().map(|_| app.rng.uuid_v7(now)).collect();
        ids.sort_unstable();
        let mut launched = Vec::with_capacity(pages.len());
        let mut changed = Vec::new();
        let mut rest = ids.into_iter().zip(pages).peekable();
        while rest.peek().is_some() {
            let (mut upserts, mut bytes) = (Vec::new(), 0);
            while let Some((id, page)) =
                rest.next_if(|(_, page)| bytes == 0 || bytes + page.bytes() <= STATEMENT_BYTES)
            {
                bytes += page.bytes();
                upserts.push(page.into_upsert(id, folder_id, subdomain.id));
            }
            let slugs: Vec<String> = upserts.iter().map(|upsert| upsert.slug.clone()).collect();
            let outcomes = store::pages::upsert_pages(tx, call.account_id, upserts, now).await?;
            for (slug, outcome) in slugs.into_iter().zip(outcomes) {
                let (id, status) = match outcome {
                    UpsertOutcome::Created(id) => (id, LaunchedPageStatus::Created),
                    UpsertOutcome::Updated(id) => (id, LaunchedPageStatus::Updated),
                    UpsertOutcome::Unchanged(id) => (id, LaunchedPageStatus::Unchanged),
                };
                if status != LaunchedPageStatus::Unchanged {
                    let path = existing.remove(&slug).flatten();
                    changed.push(Change::Page { subdomain_id: subdomain.id, slug: slug.clone(), path });
                }
                let subdomain_url = app.addresses.page(&subdomain.name, &slug);
                launched.push(LaunchedPage { id, slug, status, subdomain_url });
            }
        }
        match changed.len() > ANNOUNCED_MAX {
            true => changes.push(Change::Site { subdomain_id: subdomain.id }),
            false => changes.append(&mut changed),
        }
        Ok(launched)
    }
}

impl LaunchPage {
    /// Size in a statement; never 0, because the title is not empty.
    fn bytes(&self) -> usize {
        let css = self.css.as_ref().and_then(Option::as_ref).map_or(0, String::len);
        self.title.len() + self.html.len() + css
    }

    fn into_upsert(self, id: Uuid, folder_id: Option<Uuid>, subdomain_id: Uuid) -> PageUpsert {
        PageUpsert {
            id,
            folder_id,
            subdomain_id,
            slug: self.slug,
            title: self.title,
            html: self.html,
            css: self.css,
            metadata: None,
            is_published: Some(true),
            deploy_id: None,
        }
    }
}
