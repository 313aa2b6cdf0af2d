//! Launches a site: its name, its pages and its analytics in one call and one transaction. A failure changes nothing, and
//! the same call again changes nothing either.

mod pages;

use axum::extract::State;
use domain::pages::BATCH_MAX;
use domain::scopes::{Action, Resource};
use domain::subdomains;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::sites::Site;
use store::subdomains::Subdomain;
use store::usage;
use uuid::Uuid;
use web::{Code, CreatedOrChanged, Problem};

use self::pages::{LaunchPage, LaunchedPage, LaunchedPageStatus, PagePlan, check_pages};
use super::analytics::insert::{AnalyticsSiteInput, check_subdomain};
use super::subdomains::rename_subdomain;
use crate::App;
use crate::call::{Call, scope};
use crate::large_bodies::{self, LargeJson};
use crate::next_steps::After;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("launch")
        .post(
            "/api/launch",
            create,
            "Launch a site: up to 200 pages, its name and its analytics, all or nothing",
        )
        .body_limit(large_bodies::MAX_BYTES)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LaunchSiteRequest {
    /// New name of the subdomain: 3 to 30 lowercase letters and digits, with single hyphens inside. If it has the name
    /// already, it is not renamed. Requires `subdomains:update`.
    #[schemars(length(min = 3, max = 30), regex(pattern = subdomains::PATTERN))]
    subdomain: Option<String>,
    /// At most 200 pages with different slugs. New ones are created; existing ones are updated, with a version to roll back
    /// to; identical ones stay as they are. All of them become visible.
    #[schemars(length(min = 1, max = BATCH_MAX))]
    pages: Vec<LaunchPage>,
    /// Whether to count the visits of the site; default true. Its analytics site is created once. Requires
    /// `analytics:create`.
    analytics: Option<bool>,
    /// Subdomain to launch the site on; default: the account's first subdomain.
    subdomain_id: Option<Uuid>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LaunchResponse {
    subdomain_id: Uuid,
    /// First label of the host name.
    subdomain: String,
    /// URL of the site.
    site_url: String,
    /// Whether the subdomain got a new name.
    renamed: bool,
    /// The pages, in the order of the request.
    pages: Vec<LaunchedPage>,
    /// Number of new pages.
    created: usize,
    /// Number of changed pages.
    updated: usize,
    /// Number of pages that were the same already.
    unchanged: usize,
    /// The analytics site that counts the visits; null if the request has `analytics: false`.
    analytics_site: Option<LaunchedAnalyticsSite>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LaunchedAnalyticsSite {
    id: Uuid,
    /// Public token that events carry. The pages have the tracking script by themselves.
    site_token: String,
    /// Display name.
    name: String,
}

async fn create(
    call: Call<scope::PagesCreate>,
    State(app): State<App>,
    body: LargeJson<LaunchSiteRequest>,
) -> Result<CreatedOrChanged<LaunchResponse>, Problem> {
    let (request, share) = body.read(&app, call.account_id).await?;
    request.check(&call)?;
    let LaunchSiteRequest { subdomain: name, pages, analytics, subdomain_id } = request;
    let mut tx = store::begin(&app.db).await?;
    // First, as every transaction that writes pages does. Launches of an account therefore run one after the other.
    usage::lock(&mut tx, call.account_id).await?;
    let mut subdomain = call.subdomain(&mut tx, subdomain_id).await?;
    let mut changes = Vec::new();
    if let Some(name) = name {
        let renamed = rename_subdomain(&call, &app, &mut tx, Some(subdomain.id), &name).await;
        changes = renamed.map_err(with_rename_hint)?.changes;
        subdomain.name = name;
    }
    let is_renamed = !changes.is_empty();
    let plan = PagePlan::make(&call, &mut tx, &subdomain, pages).await?;
    let (counted, missing) = match analytics.unwrap_or(true) {
        true => find_analytics(&call, &mut tx, &subdomain).await?,
        false => (None, false),
    };
    let created = plan.created();
    count(&call, &mut tx, created, missing).await?;
    let pages = plan.write(&call, &app, &mut tx, &mut changes).await?;
    drop(share);
    let mut site = counted;
    if missing {
        let (new, change) = site_of(&app, &subdomain).insert(&call, &app, &mut tx).await?;
        changes.push(change);
        site = Some(new);
    }
    if changes.is_empty() {
        call.commit_unchanged(&app, tx).await?;
    } else {
        call.set_changed(Resource::Subdomains, subdomain.id, &subdomain.name);
        call.commit(&app, tx, changes).await?;
    }
    if is_renamed {
        app.credentials.invalidate_account(call.account_id);
    }
    let next = call.suggestions(&app, After::Launch { site_id: site.as_ref().map(|site| site.id) }).await;
    let response = response(&app, subdomain, is_renamed, pages, site);
    Ok(match created > 0 || missing {
        true => CreatedOrChanged::Created(call.created(response).with_next(next)),
        false => CreatedOrChanged::Changed(call.reply(response).with_next(next)),
    })
}

impl LaunchSiteRequest {
    /// Checks the fields, then whether the key has the scope of each part.
    fn check<S>(&self, call: &Call<S>) -> Result<(), Problem> {
        let name = self.subdomain.as_deref();
        let mut errors = name.map(|name| subdomains::check("subdomain", name)).unwrap_or_default();
        errors.extend(check_pages(&self.pages)?);
        if !errors.is_empty() {
            return Err(Problem::validation(errors));
        }
        call.require_scope(Resource::Pages, Action::Update)?;
        if name.is_some() {
            call.require_scope(Resource::Subdomains, Action::Update)?;
        }
        if self.analytics.unwrap_or(true) {
            call.require_scope(Resource::Analytics, Action::Create)?;
        }
        Ok(())
    }
}

fn with_rename_hint(problem: Problem) -> Problem {
    if problem.code() != Code::Conflict {
        return problem;
    }
    problem.hint(
        "choose another name; to launch the site on another subdomain of this account, send its subdomainId",
    )
}

/// Returns the analytics site of a subdomain, and whether one must be created.
async fn find_analytics<S>(
    call: &Call<S>,
    tx: &mut store::Tx,
    subdomain: &Subdomain,
) -> Result<(Option<Site>, bool), Problem> {
    let allowed = match store::sites::find_site_of_subdomain(tx, call.account_id, subdomain.id).await? {
        Some(site) => call.check_id(tx, Resource::Analytics, site.id).await.map(|()| (Some(site), false)),
        None => match call.check_new(Resource::Analytics) {
            Ok(()) => check_subdomain(call, tx, subdomain.id).await.map(|()| (None, true)),
            Err(refusal) => Err(refusal),
        },
    };
    allowed.map_err(|refusal| match refusal.is_client_error() {
        true => refusal
            .hint("send `analytics: false` to launch without analytics, or use a key without restrictions"),
        false => refusal,
    })
}

/// Counts the new pages and the new analytics site, all or none.
async fn count<S>(
    call: &Call<S>,
    tx: &mut store::Tx,
    new_pages: usize,
    new_site: bool,
) -> Result<(), Problem> {
    let asked = i64::try_from(new_pages).unwrap_or(i64::MAX).saturating_add(i64::from(new_site));
    let limit = call.limits().projects;
    if usage::reserve_projects(tx, call.account_id, asked, limit).await? {
        return Ok(());
    }
    let used = usage::find_usage(tx, call.account_id).await?.map_or(0, |usage| usage.projects);
    Err(call.quota_exceeded("projects", limit, used, asked))
}

fn site_of(app: &App, subdomain: &Subdomain) -> AnalyticsSiteInput {
    AnalyticsSiteInput {
        name: subdomain.name.clone(),
        domain: Some(app.addresses.site_host(&subdomain.name)),
        subdomain_id: Some(subdomain.id),
        folder_id: None,
        hash_routing: false,
    }
}

fn response(
    app: &App,
    subdomain: Subdomain,
    renamed: bool,
    pages: Vec<LaunchedPage>,
    site: Option<Site>,
) -> LaunchResponse {
    let count = |status| pages.iter().filter(|page| page.status == status).count();
    LaunchResponse {
        subdomain_id: subdomain.id,
        site_url: app.addresses.site(&subdomain.name),
        subdomain: subdomain.name,
        renamed,
        created: count(LaunchedPageStatus::Created),
        updated: count(LaunchedPageStatus::Updated),
        unchanged: count(LaunchedPageStatus::Unchanged),
        pages,
        analytics_site: site.map(|site| LaunchedAnalyticsSite {
            id: site.id,
            site_token: site.site_token,
            name: site.name,
        }),
    }
}
