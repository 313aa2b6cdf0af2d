//! Publishes many pages in one call. Each page has its own transaction and succeeds or fails on its own.

use axum::extract::State;
use contract::Change;
use domain::pages::{self, BATCH_MAX};
use domain::scopes::{Action, Resource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::pages::{PageUpsert, UpsertOutcome, find_id_by_slug, upsert_page};
use store::subdomains::Subdomain;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Problem, Reply, read_item};

use super::checks::{check_count, slug_taken};
use crate::App;
use crate::call::{Call, scope};
use crate::large_bodies::LargeJson;
use crate::next_steps::After;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BatchPagesRequest {
    /// At most 200 pages, processed in order.
    #[schemars(with = "Vec<BatchPage>", length(min = 1, max = BATCH_MAX))]
    pages: Vec<Value>,
    /// Subdomain to publish to; default: the account's first subdomain.
    subdomain_id: Option<Uuid>,
    /// Folder for new pages.
    folder_id: Option<Uuid>,
    /// Whether to update existing pages, skipping unchanged ones; otherwise an existing page is an error.
    #[serde(default)]
    upsert: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BatchPage {
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
    /// Your own data, at most 16 KB as JSON; if absent, an existing page keeps its own.
    metadata: Option<Map<String, Value>>,
    /// Whether visitors can see the page. Default true; an existing page keeps its state.
    is_published: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageBatchResponse {
    /// One result per page, in the order of the request.
    results: Vec<PageBatchResult>,
    /// Number of new pages.
    created: usize,
    /// Number of changed pages.
    updated: usize,
    /// Number of pages that were the same already.
    unchanged: usize,
    /// Number of pages that failed.
    failed: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PageBatchResult {
    /// Position in the request, from 0.
    index: usize,
    /// The outcome for this page.
    status: PageBatchStatus,
    /// Id of the page; absent if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Uuid>,
    /// The requested slug.
    slug: String,
    /// Public URL of the page; absent if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    subdomain_url: Option<String>,
    /// Why it failed; absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The page that already has the slug.
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_page_id: Option<Uuid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PageBatchStatus {
    Created,
    Updated,
    Unchanged,
    Error,
}

/// Why an item failed.
struct Refusal {
    problem: Problem,
    existing_page_id: Option<Uuid>,
}

impl<P: Into<Problem>> From<P> for Refusal {
    fn from(problem: P) -> Self {
        Self { problem: problem.into(), existing_page_id: None }
    }
}

/// Where the pages of one call are published.
struct BatchTarget {
    subdomain: Subdomain,
    folder_id: Option<Uuid>,
    upsert: bool,
}

pub(super) async fn batch(
    call: Call<scope::PagesCreate>,
    State(app): State<App>,
    body: LargeJson<BatchPagesRequest>,
) -> Result<Reply<PageBatchResponse>, Problem> {
    let (body, share) = body.read(&app, call.account_id).await?;
    let BatchPagesRequest { pages, subdomain_id, folder_id, upsert } = body;
    check_count("pages", pages.len())?;
    if upsert {
        call.require_scope(Resource::Pages, Action::Update)?;
    }
    let mut conn = store::acquire(&app.db).await?;
    let folder_id = match (folder_id, upsert) {
        // Whether new pages may be created is checked when one is: existing pages may be updated without that.
        (None, true) => call.restrictions().folder_id,
        (folder_id, _) => call.new_resource_folder(&mut conn, Resource::Pages, folder_id).await?,
    };
    let target = BatchTarget { subdomain: call.subdomain(&mut conn, subdomain_id).await?, folder_id, upsert };
    drop(conn);

    let mut results = Vec::new();
    let mut failure: Option<Problem> = None;
    for (index, item) in pages.into_iter().enumerate() {
        let slug = item["slug"].as_str().unwrap_or_default().to_owned();
        let result = match &failure {
            None => publish_one(&call, &app, &target, item).await,
            Some(failure) => Err(Refusal::from(failure.clone())),
        };
        if let Err(Refusal { problem, .. }) = &result
            && !problem.is_client_error()
            && failure.is_none()
        {
            if index == 0 {
                return Err(problem.clone());
            }
            // A failure of a dependency would only repeat for each further item, after its timeout.
            failure = Some(problem.clone());
        }
        results.push(page_result(&app, &target, index, slug, result));
    }
    drop(share);
    let count = |status| results.iter().filter(|result| result.status == status).count();
    let [created, updated, unchanged, failed] = [
        PageBatchStatus::Created,
        PageBatchStatus::Updated,
        PageBatchStatus::Unchanged,
        PageBatchStatus::Error,
    ]
    .map(count);
    let next = if created > 0 { call.suggestions(&app, After::Pages).await } else { Vec::new() };
    let response = PageBatchResponse { results, created, updated, unchanged, failed };
    Ok(call.reply(response).with_next(next))
}

/// Creates or updates one page.
async fn publish_one(
    call: &Call<scope::PagesCreate>,
    app: &App,
    target: &BatchTarget,
    item: Value,
) -> Result<UpsertOutcome, Refusal> {
    let page: BatchPage = read_item(item)?;
    let mut errors = pages::check_slug(&page.slug);
    let css = page.css.as_ref().and_then(Option::as_deref);
    errors.extend(pages::check_content(Some(&page.title), Some(&page.html), css, None));
    errors.extend(page.metadata.iter().flat_map(pages::check_metadata));
    if !errors.is_empty() {
        return Err(Problem::validation(errors).into());
    }
    let (account_id, subdomain) = (call.account_id, &target.subdomain);
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    match find_id_by_slug(&mut tx, account_id, subdomain.id, &page.slug).await? {
        Some(id) if target.upsert => call.check_id(&mut tx, Resource::Pages, id).await?,
        Some(id) => {
            let within_reach = call.check_id(&mut tx, Resource::Pages, id).await;
            return Err(Refusal {
                problem: slug_taken(subdomain, &page.slug),
                existing_page_id: within_reach.is_ok().then_some(id),
            });
        }
        None => {
            call.check_new(Resource::Pages)?;
            let limit = call.limits().projects;
            if !usage::reserve(&mut tx, account_id, Counter::Projects, limit).await? {
                return Err(call.count_exceeded(&mut tx, Counter::Projects).await.into());
            }
        }
    }
    let upsert = PageUpsert {
        id: app.rng.uuid_v7(call.now),
        folder_id: target.folder_id,
        subdomain_id: subdomain.id,
        slug: page.slug,
        title: page.title,
        html: page.html,
        css: page.css,
        metadata: page.metadata.map(Value::Object),
        is_published: page.is_published,
        deploy_id: None,
    };
    let upserted = upsert_page(&mut tx, account_id, upsert, app.clock.now()).await?;
    match upserted {
        UpsertOutcome::Unchanged(_) => call.commit_unchanged(app, tx).await?,
        UpsertOutcome::Created(id) | UpsertOutcome::Updated(id) => {
            let location = store::pages::find_location(&mut tx, account_id, id).await?;
            let slug = location.as_ref().map_or("", |location| location.slug.as_str());
            call.set_changed(Resource::Pages, id, slug);
            let changes = location.into_iter().map(Change::from).collect();
            call.commit(app, tx, changes).await?;
        }
    }
    Ok(upserted)
}

fn page_result(
    app: &App,
    target: &BatchTarget,
    index: usize,
    slug: String,
    result: Result<UpsertOutcome, Refusal>,
) -> PageBatchResult {
    let (status, id, refusal) = match result {
        Ok(UpsertOutcome::Created(id)) => (PageBatchStatus::Created, Some(id), None),
        Ok(UpsertOutcome::Updated(id)) => (PageBatchStatus::Updated, Some(id), None),
        Ok(UpsertOutcome::Unchanged(id)) => (PageBatchStatus::Unchanged, Some(id), None),
        Err(refusal) => (PageBatchStatus::Error, None, Some(refusal)),
    };
    PageBatchResult {
        index,
        status,
        id,
        subdomain_url: id.map(|_| app.addresses.page(&target.subdomain.name, &slug)),
        slug,
        error: refusal.as_ref().map(|refusal| refusal.problem.detail().to_owned()),
        existing_page_id: refusal.and_then(|refusal| refusal.existing_page_id),
    }
}
