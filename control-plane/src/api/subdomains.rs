//! Subdomains: the host names of an account's sites.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::scopes::Resource;
use domain::{subdomains, units};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::sites::SiteChange;
use store::subdomain_names::RenamableSubdomain;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Created, Json, Problem, Query, Reply, Sort};

use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("subdomains")
        .get("/api/account/subdomain", first, "Get the first subdomain")
        .put("/api/account/subdomain", rename, "Rename the first subdomain")
        .deprecated("/api/account/subdomains")
        .get("/api/account/subdomains", list, "List subdomains with their page counts")
        .post("/api/account/subdomains", create, "Create a subdomain")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateSubdomainRequest {
    /// 3 to 30 lowercase letters and digits, with single hyphens inside.
    #[schemars(length(min = 3, max = 30), regex(pattern = subdomains::PATTERN))]
    name: String,
}

/// A subdomain may be renamed 3 times in 24 hours, unless the operator has set another limit; then the answer is 429, with
/// the time of the next rename in `Retry-After`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RenameSubdomainRequest {
    /// 3 to 30 lowercase letters and digits, with single hyphens inside.
    #[schemars(length(min = 3, max = 30), regex(pattern = subdomains::PATTERN))]
    subdomain: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SubdomainView {
    id: Uuid,
    /// First label of the host name.
    name: String,
    /// URL of the site.
    url: String,
    /// Number of pages that the caller may access.
    page_count: i64,
    created_at: DateTime<Utc>,
}

web::list_response!(SubdomainListResponse { subdomains: SubdomainView });

#[derive(Debug, Serialize, JsonSchema)]
struct FirstSubdomainResponse {
    id: Uuid,
    /// First label of the host name.
    subdomain: String,
    /// URL of the site.
    url: String,
}

web::list_query!(SubdomainsQuery {
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

async fn list(
    call: Call<scope::SubdomainsRead>,
    State(app): State<App>,
    Query(query): Query<SubdomainsQuery>,
) -> Result<Reply<SubdomainListResponse>, Problem> {
    let filter = call.list_filter(Resource::Subdomains, &query.pagination().sorted(query.sort))?;
    let mut conn = store::acquire(&app.db).await?;
    let pages = call.restrictions().ids_of(Resource::Pages);
    let rows = store::subdomain_names::list_subdomains(&mut conn, call.account_id, &filter, pages).await?;
    let view = |row: store::subdomain_names::ListedSubdomain| SubdomainView {
        id: row.id,
        url: app.addresses.site(&row.name),
        name: row.name,
        page_count: row.pages,
        created_at: row.created_at,
    };
    Ok(call.list(rows, &filter, view))
}

async fn create(
    call: Call<scope::SubdomainsCreate>,
    State(app): State<App>,
    Json(CreateSubdomainRequest { name }): Json<CreateSubdomainRequest>,
) -> Result<Created<SubdomainView>, Problem> {
    let errors = subdomains::check("name", &name);
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    call.check_whole_account(Resource::Subdomains)?;
    call.check_new(Resource::Subdomains)?;
    let id = app.rng.uuid_v7(call.now);
    let limit = call.limits().subdomains;
    let mut tx = store::begin(&app.db).await?;
    // Before the name, as a launch locks them.
    usage::lock(&mut tx, call.account_id).await?;
    if !store::subdomain_names::reserve_name(&mut tx, call.account_id, &name, call.now).await? {
        return Err(taken(&name));
    }
    if !usage::reserve(&mut tx, call.account_id, Counter::Subdomains, limit).await? {
        return Err(call.count_exceeded(&mut tx, Counter::Subdomains).await);
    }
    store::subdomains::insert_subdomain(&mut tx, call.account_id, id, &name, call.now).await?;
    call.set_changed(Resource::Subdomains, id, &name);
    call.commit(&app, tx, vec![Change::Host { host: name.clone() }]).await?;

    let next = call.suggestions(&app, After::Subdomain { id, name: &name }).await;
    let url = app.addresses.site(&name);
    let view = SubdomainView { id, name, url, page_count: 0, created_at: call.now };
    Ok(call.created(view).with_next(next))
}

async fn first(
    call: Call<scope::SubdomainsRead>,
    State(app): State<App>,
) -> Result<Reply<FirstSubdomainResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let found = call.subdomain(&mut conn, None).await?;
    let url = app.addresses.site(&found.name);
    Ok(call.reply(FirstSubdomainResponse { id: found.id, subdomain: found.name, url }))
}

async fn rename(
    call: Call<scope::SubdomainsUpdate>,
    State(app): State<App>,
    Json(RenameSubdomainRequest { subdomain: name }): Json<RenameSubdomainRequest>,
) -> Result<Reply<FirstSubdomainResponse>, Problem> {
    let errors = subdomains::check("subdomain", &name);
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let mut tx = store::begin(&app.db).await?;
    // A launch, which also locks it first, writes the name that it has read into the analytics site.
    usage::lock(&mut tx, call.account_id).await?;
    let Renamed { id, changes } = rename_subdomain(&call, &app, &mut tx, None, &name).await?;
    if !changes.is_empty() {
        call.set_changed(Resource::Subdomains, id, &name);
        call.commit(&app, tx, changes).await?;
        app.credentials.invalidate_account(call.account_id);
    }
    let url = app.addresses.site(&name);
    Ok(call.reply(FirstSubdomainResponse { id, subdomain: name, url }))
}

/// The result of a rename.
#[derive(Debug)]
pub(super) struct Renamed {
    /// The subdomain's id.
    pub(super) id: Uuid,
    /// The hosts of the changed site; empty if the subdomain had the name already.
    pub(super) changes: Vec<Change>,
}

/// Renames a subdomain, by default the account's first, to a valid name. After the commit, the caller must invalidate the
/// account's credentials, which hold the name of the first subdomain.
pub(super) async fn rename_subdomain<S>(
    call: &Call<S>,
    app: &App,
    tx: &mut store::Tx,
    id: Option<Uuid>,
    name: &str,
) -> Result<Renamed, Problem> {
    call.check_whole_account(Resource::Subdomains)?;
    let found = store::subdomain_names::lock_subdomain(tx, call.account_id, id).await?;
    let mut found = found.ok_or_else(|| Problem::not_found("subdomain"))?;
    call.check_id(tx, Resource::Subdomains, found.id).await?;
    if found.name == name {
        return Ok(Renamed { id: found.id, changes: Vec::new() });
    }
    let rules = &app.subdomains;
    if let Err(wait) = subdomains::note_rename(&mut found.renamed_at, call.now, rules.max_renames_per_day) {
        let times = units::counted(i64::from(rules.max_renames_per_day), "times");
        let detail = format!("a subdomain may be renamed at most {times} in 24 hours");
        return Err(Problem::new(Code::RateLimited, detail).retry_after(wait));
    }
    if !store::subdomain_names::reserve_name(tx, call.account_id, name, call.now).await? {
        return Err(taken(name));
    }
    let kept_until = call.now + rules.redirect_ttl;
    store::subdomain_names::update_name(tx, call.account_id, &found, name, call.now, kept_until).await?;
    let site = rename_analytics(call, app, tx, &found, name).await?;
    let hosts = [found.name, name.to_owned()].map(|host| Change::Host { host });
    Ok(Renamed { id: found.id, changes: hosts.into_iter().chain(site).collect() })
}

/// Updates the host of the renamed subdomain's analytics site, if it has the old one. The host follows from the subdomain, so
/// this needs no access to the site itself.
async fn rename_analytics<S>(
    call: &Call<S>,
    app: &App,
    tx: &mut store::Tx,
    old: &RenamableSubdomain,
    name: &str,
) -> Result<Option<Change>, Problem> {
    let site = store::sites::find_site_of_subdomain(tx, call.account_id, old.id).await?;
    let old_host = app.addresses.site_host(&old.name);
    let Some(site) = site.filter(|site| site.domain.as_ref() == Some(&old_host)) else { return Ok(None) };
    let change = SiteChange { domain: Some(Some(app.addresses.site_host(name))), ..SiteChange::default() };
    store::sites::update_site(tx, call.account_id, site.id, &change).await?;
    Ok(Some(Change::AnalyticsSite { site_token: site.site_token, subdomain_id: site.subdomain_id }))
}

fn taken(name: &str) -> Problem {
    Problem::new(Code::Conflict, format!("the name `{name}` is taken; choose another"))
}
