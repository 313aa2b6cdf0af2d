//! Subdomains: the host names of an account's sites.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::scopes::Resource;
use domain::{subdomains, units};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Created, Json, Problem, Query, Reply, Sort};

use crate::App;
use crate::call::{Call, scope};

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
    if !store::subdomain_names::reserve_name(&mut tx, call.account_id, &name, call.now).await? {
        return Err(taken(&name));
    }
    if !usage::reserve(&mut tx, call.account_id, Counter::Subdomains, limit).await? {
        return Err(call.count_exceeded(&mut tx, Counter::Subdomains).await);
    }
    store::subdomains::insert_subdomain(&mut tx, call.account_id, id, &name, call.now).await?;
    app.commit(tx, vec![Change::Host { host: name.clone() }]).await?;

    let page = json!({"slug": "index", "title": "Hello", "html": "<h1>Hello</h1>", "subdomainId": id});
    let url = app.addresses.site(&name);
    let view = SubdomainView { id, name, url, page_count: 0, created_at: call.now };
    Ok(call.created(view).next("publish", "pages.create", page, "Publish its first page"))
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
    call.check_whole_account(Resource::Subdomains)?;
    let mut tx = store::begin(&app.db).await?;
    let first = store::subdomain_names::lock_first_subdomain(&mut tx, call.account_id).await?;
    let mut first = first.ok_or_else(|| Problem::not_found("subdomain"))?;
    call.check_id(&mut tx, Resource::Subdomains, first.id).await?;
    if first.name != name {
        let rules = &app.subdomains;
        if let Err(wait) = subdomains::note_rename(&mut first.renamed_at, call.now, rules.max_renames_per_day)
        {
            let times = units::counted(i64::from(rules.max_renames_per_day), "times");
            let detail = format!("a subdomain may be renamed at most {times} in 24 hours");
            return Err(Problem::new(Code::RateLimited, detail).retry_after(wait));
        }
        if !store::subdomain_names::reserve_name(&mut tx, call.account_id, &name, call.now).await? {
            return Err(taken(&name));
        }
        let kept_until = call.now + rules.redirect_ttl;
        store::subdomain_names::update_name(&mut tx, call.account_id, &first, &name, call.now, kept_until)
            .await?;
        let hosts = [first.name, name.clone()].map(|host| Change::Host { host });
        app.commit(tx, hosts.into()).await?;
        app.credentials.invalidate_account(call.account_id);
    }
    let url = app.addresses.site(&name);
    Ok(call.reply(FirstSubdomainResponse { id: first.id, subdomain: name, url }))
}

fn taken(name: &str) -> Problem {
    Problem::new(Code::Conflict, format!("the name `{name}` is taken; choose another"))
}
