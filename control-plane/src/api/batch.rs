//! Many pages in one call: each for itself, in a transaction of its own, so that one that is wrong does not keep the
//! others.

use axum::extract::State;
use contract::Change;
use domain::Complaint;
use domain::pages::{self, BATCH_MAX};
use domain::scopes::{Action, Resource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::pages::{PageUpsert, Upserted, find_id_by_slug, upsert_page};
use store::subdomains::Subdomain;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Problem, Reply, read_item};

use crate::App;
use crate::call::{Call, scope};
use crate::large_json::LargeJson;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Batch {
    /// At most 200. Of two with one slug the second comes after the first.
    #[schemars(with = "Vec<BatchPage>", length(min = 1, max = BATCH_MAX))]
    pages: Vec<Value>,
    /// The account's first subdomain unless told otherwise.
    subdomain_id: Option<Uuid>,
    /// The folder that new pages lie in.
    folder_id: Option<Uuid>,
    /// Whether pages that are there already are edited, and skipped if they are the same; else they are errors.
    #[serde(default)]
    upsert: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BatchPage {
    #[schemars(length(min = 2, max = 200), regex(pattern = pages::SLUG_PATTERN))]
    slug: String,
    #[schemars(length(min = 1, max = pages::TITLE_CHARS_MAX))]
    title: String,
    /// The whole document, at most 512 KB.
    #[schemars(length(max = pages::MAX_HTML_BYTES))]
    html: String,
    /// At most 128 KB. Null removes it; a page that is there keeps it if it isn't given.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = pages::MAX_CSS_BYTES))]
    css: Option<Option<String>>,
    /// Your own notes; a page that is there keeps them if they aren't given.
    metadata: Option<Map<String, Value>>,
    /// True unless told otherwise; a page that is there stays as it is.
    is_published: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Outcomes {
    results: Vec<Outcome>,
    created: usize,
    updated: usize,
    unchanged: usize,
    failed: usize,
}

/// What became of a page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    index: usize,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Uuid>,
    slug: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subdomain_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The page that has the slug already.
    #[serde(skip_serializing_if = "Option::is_none")]
    existing_page_id: Option<Uuid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Created,
    Updated,
    Unchanged,
    Error,
}

/// Why an item was not carried out.
struct Refusal {
    problem: Problem,
    existing_page_id: Option<Uuid>,
}

impl<P: Into<Problem>> From<P> for Refusal {
    fn from(problem: P) -> Self {
        Self { problem: problem.into(), existing_page_id: None }
    }
}

/// Where the pages of a call go.
struct Place {
    subdomain: Subdomain,
    folder_id: Option<Uuid>,
    upsert: bool,
}

pub(super) async fn batch(
    call: Call<scope::PagesCreate>,
    State(app): State<App>,
    LargeJson { body, permit }: LargeJson<Batch>,
) -> Result<Reply<Outcomes>, Problem> {
    let Batch { pages, subdomain_id, folder_id, upsert } = body;
    check_count("pages", pages.len())?;
    if upsert {
        call.require_scope(Resource::Pages, Action::Update)?;
    }
    let mut conn = store::acquire(&app.db).await?;
    let folder_id = match (folder_id, upsert) {
        // Whether new ones may be made at all is seen once there is one: pages that are there may be edited.
        (None, true) => call.restrictions().folder_id,
        (wanted, _) => call.new_resource_folder(&mut conn, Resource::Pages, wanted).await?,
    };
    let place = Place { subdomain: call.subdomain(&mut conn, subdomain_id).await?, folder_id, upsert };
    drop(conn);

    let mut results = Vec::new();
    let mut failure: Option<Problem> = None;
    for (index, item) in pages.into_iter().enumerate() {
        let slug = item["slug"].as_str().unwrap_or_default().to_owned();
        let done = match &failure {
            None => one(&call, &app, &place, item).await,
            Some(failure) => Err(Refusal::from(failure.clone())),
        };
        if let Err(Refusal { problem, .. }) = &done
            && !problem.is_refusal()
            && failure.is_none()
        {
            if index == 0 {
                return Err(problem.clone());
            }
            // It would only be waited for again, item by item.
            failure = Some(problem.clone());
        }
        results.push(outcome(&app, &place, index, slug, done));
    }
    drop(permit);
    let count = |status| results.iter().filter(|result| result.status == status).count();
    let [created, updated, unchanged, failed] =
        [Status::Created, Status::Updated, Status::Unchanged, Status::Error].map(count);
    Ok(call.reply(Outcomes { results, created, updated, unchanged, failed }))
}

/// Makes or edits one page.
async fn one(
    call: &Call<scope::PagesCreate>,
    app: &App,
    place: &Place,
    item: Value,
) -> Result<Upserted, Refusal> {
    let page: BatchPage = read_item(item)?;
    let mut complaints = pages::check_slug(&page.slug);
    let css = page.css.as_ref().and_then(Option::as_deref);
    complaints.extend(pages::check_content(Some(&page.title), Some(&page.html), css, None));
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints).into());
    }
    let (account_id, subdomain) = (call.account_id, &place.subdomain);
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    match find_id_by_slug(&mut tx, account_id, subdomain.id, &page.slug).await? {
        Some(id) if place.upsert => call.check_id(&mut tx, Resource::Pages, id).await?,
        Some(id) => {
            let within_reach = call.check_id(&mut tx, Resource::Pages, id).await;
            return Err(Refusal {
                problem: super::pages::slug_taken(subdomain, &page.slug),
                existing_page_id: within_reach.is_ok().then_some(id),
            });
        }
        None => {
            call.check_new(Resource::Pages)?;
            let limit = call.limits().projects;
            if !usage::take(&mut tx, account_id, Counter::Projects, limit).await? {
                return Err(call.quota_exceeded("projects", limit).into());
            }
        }
    }
    let slug = page.slug.clone();
    let wanted = PageUpsert {
        id: app.rng.uuid_v7(call.now),
        folder_id: place.folder_id,
        subdomain_id: subdomain.id,
        slug: page.slug,
        title: page.title,
        html: page.html,
        css: page.css,
        metadata: page.metadata.map(Value::Object),
        is_published: page.is_published,
        deploy_id: None,
    };
    let upserted = upsert_page(&mut tx, account_id, wanted, app.clock.now()).await?;
    let changes = match upserted {
        Upserted::Unchanged(_) => vec![],
        Upserted::Created(_) | Upserted::Updated(_) => {
            vec![Change::Page { subdomain_id: subdomain.id, slug }]
        }
    };
    app.commit(tx, changes).await?;
    Ok(upserted)
}

fn outcome(app: &App, place: &Place, index: usize, slug: String, done: Result<Upserted, Refusal>) -> Outcome {
    let (status, id, refusal) = match done {
        Ok(Upserted::Created(id)) => (Status::Created, Some(id), None),
        Ok(Upserted::Updated(id)) => (Status::Updated, Some(id), None),
        Ok(Upserted::Unchanged(id)) => (Status::Unchanged, Some(id), None),
        Err(refusal) => (Status::Error, None, Some(refusal)),
    };
    Outcome {
        index,
        status,
        id,
        subdomain_url: id.map(|_| app.addresses.page(&place.subdomain.name, &slug)),
        slug,
        error: refusal.as_ref().map(|refusal| refusal.problem.detail().to_owned()),
        existing_page_id: refusal.and_then(|refusal| refusal.existing_page_id),
    }
}

/// A call names at least one page, and not more than fit.
pub(super) fn check_count(field: &'static str, count: usize) -> Result<(), Problem> {
    if (1..=BATCH_MAX).contains(&count) {
        return Ok(());
    }
    let message = format!("{field} must name 1 to {BATCH_MAX} pages, not {count}");
    Err(Problem::validation(vec![Complaint::new(field, "count", message)]))
}
