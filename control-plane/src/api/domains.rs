//! Custom domains: serve a site under the owner's host name.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::domains::{self, Record};
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::domains::{Domain, NewDomain};
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Created, Deletion, Json, PaginationQuery, Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("domains")
        .get("/api/account/domains", list, "List custom domains with their status")
        .post("/api/account/domains", create, "Add a custom domain")
        .get("/api/account/domains/{id}", read, "Get a custom domain and its DNS records")
        .patch("/api/account/domains/{id}", update, "Point a custom domain at another subdomain")
        .delete("/api/account/domains/{id}", delete, "Remove a custom domain")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateDomainRequest {
    /// Host name, such as `www.example.com`.
    #[schemars(length(max = 253), extend("format" = "idn-hostname"))]
    domain: String,
    /// Subdomain to serve; default: the account's first subdomain.
    subdomain_id: Option<Uuid>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateDomainRequest {
    /// Subdomain to serve.
    subdomain_id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DomainView {
    id: Uuid,
    /// Host name.
    domain: String,
    /// The subdomain that the domain serves.
    subdomain_id: Uuid,
    /// Name of that subdomain.
    subdomain_name: String,
    /// `pending`, `active` or `failed`.
    status: String,
    /// `pending`, `verified` or `failed`.
    dns_status: String,
    /// `pending`, `issuing`, `active` or `failed`.
    ssl_status: String,
    /// Records to add to the domain's DNS.
    records: Vec<Record>,
    /// When the DNS records were last checked; null before the first check.
    last_checked_at: Option<DateTime<Utc>>,
    /// The last error; null if there is none.
    error: Option<String>,
    created_at: DateTime<Utc>,
}

web::list_response!(DomainListResponse { domains: DomainView });

async fn list(
    call: Call<scope::DomainsRead>,
    State(app): State<App>,
    Query(pagination): Query<PaginationQuery>,
) -> Result<Reply<DomainListResponse>, Problem> {
    call.check_whole_account(Resource::Domains)?;
    let filter = call.list_filter(Resource::Domains, &pagination)?;
    let mut conn = store::acquire(&app.db).await?;
    let rows = store::domains::list_domains(&mut conn, call.account_id, &filter).await?;
    Ok(call.list(rows, filter.limit, |row| view(&app, row)))
}

async fn create(
    call: Call<scope::DomainsCreate>,
    State(app): State<App>,
    Json(request): Json<CreateDomainRequest>,
) -> Result<Created<DomainView>, Problem> {
    let own = [app.addresses.base_host(), app.addresses.sites_domain()];
    let domain = domains::read(&request.domain, &own).map_err(|error| Problem::validation(vec![error]))?;
    call.check_whole_account(Resource::Domains)?;
    call.check_new(Resource::Domains)?;
    let limit = call.limits().custom_domains;
    if limit == 0 {
        return Err(call.plan_restricted("custom domains"));
    }
    let mut tx = store::begin(&app.db).await?;
    let new = NewDomain {
        id: app.rng.uuid_v7(call.now),
        domain,
        subdomain_id: call.subdomain(&mut tx, request.subdomain_id).await?.id,
        challenge: domains::challenge(&app.rng.bytes()),
        created_at: call.now,
    };
    if !store::domains::insert_domain(&mut tx, call.account_id, &new).await? {
        let detail = format!("this account already has the domain {}", new.domain);
        return Err(Problem::new(Code::Conflict, detail).hint("find it with GET /api/account/domains"));
    }
    if !usage::reserve(&mut tx, call.account_id, Counter::Domains, limit).await? {
        return Err(call.quota_exceeded("custom domains", limit));
    }
    let created = find(&call, &mut tx, new.id).await?;
    app.commit(tx, vec![]).await?;
    let check = json!({"id": new.id});
    let hint = "Add the records to the DNS, then check whether they are visible";
    Ok(call.created(view(&app, created)).next("verify", "domains.read", check, hint))
}

async fn read(
    call: Call<scope::DomainsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<DomainView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Domains, id).await?;
    let domain = find(&call, &mut conn, id).await?;
    Ok(call.reply(view(&app, domain)))
}

async fn update(
    call: Call<scope::DomainsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(UpdateDomainRequest { subdomain_id }): Json<UpdateDomainRequest>,
) -> Result<Reply<DomainView>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Domains, id).await?;
    call.check_id(&mut tx, Resource::Subdomains, subdomain_id).await?;
    store::domains::update_subdomain(&mut tx, call.account_id, id, subdomain_id).await?;
    let domain = find(&call, &mut tx, id).await?;
    app.commit(tx, vec![Change::Host { host: domain.domain.clone() }]).await?;
    Ok(call.reply(view(&app, domain)))
}

async fn delete(
    call: Call<scope::DomainsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Domains, id).await?;
    let deleted = store::domains::delete_domain(&mut tx, call.account_id, id).await?;
    let host = deleted.ok_or_else(|| Problem::not_found("domain"))?;
    usage::release(&mut tx, call.account_id, Counter::Domains).await?;
    app.commit(tx, vec![Change::Host { host }]).await?;
    Ok(call.reply(Deletion::now()))
}

async fn find<S>(call: &Call<S>, conn: &mut store::Conn, id: Uuid) -> Result<Domain, Problem> {
    let domain = store::domains::find_domain(conn, call.account_id, id).await?;
    domain.ok_or_else(|| Problem::not_found("domain"))
}

fn view(app: &App, domain: Domain) -> DomainView {
    let target = app.addresses.site_host(&domain.subdomain);
    DomainView {
        id: domain.id,
        records: domains::records(&domain.domain, &target, &domain.challenge),
        domain: domain.domain,
        subdomain_id: domain.subdomain_id,
        subdomain_name: domain.subdomain,
        status: domain.status,
        dns_status: domain.dns_status,
        ssl_status: domain.ssl_status,
        last_checked_at: domain.last_checked_at,
        error: domain.error,
        created_at: domain.created_at,
    }
}
