//! Custom domains: serve a site under the owner's host name.

mod checks;
mod settings;
mod views;

use axum::extract::State;
use contract::Change;
use domain::domains;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::Deserialize;
use store::domains::{Domain, DomainChange, NewDomain};
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Created, Deletion, Json, Path, Problem, Query, Reply, Sort};

use self::checks::{check, read};
use self::settings::{check_hsts, check_redirect};
use self::views::{DomainView, Hsts, find, view};
use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("domains")
        .post("/api/account/domains/{id}/check", check, "Check the DNS records of a custom domain now")
        .extension()
        .get("/api/account/domains", list, "List custom domains with their status")
        .post("/api/account/domains", create, "Add a custom domain")
        .get(
            "/api/account/domains/{id}",
            read,
            "Get a custom domain and its DNS records, checked again if needed",
        )
        .patch("/api/account/domains/{id}", update, "Change a custom domain, such as its subdomain")
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
    /// Another domain of the account, to which all requests are redirected with 308 (extension).
    redirect_to: Option<Uuid>,
    /// Sends `Strict-Transport-Security` over https (extension); default: not sent.
    hsts: Option<Hsts>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateDomainRequest {
    /// Subdomain to serve. Required unless another field is given.
    subdomain_id: Option<Uuid>,
    /// Another domain of the account, to which all requests are redirected with 308 (extension); null ends the redirect.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Uuid>")]
    redirect_to: Option<Option<Uuid>>,
    /// Sends `Strict-Transport-Security` over https (extension); null sends none.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Hsts>")]
    hsts: Option<Option<Hsts>>,
}

web::list_response!(DomainListResponse { domains: DomainView });

web::list_query!(DomainsQuery {
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

async fn list(
    call: Call<scope::DomainsRead>,
    State(app): State<App>,
    Query(query): Query<DomainsQuery>,
) -> Result<Reply<DomainListResponse>, Problem> {
    call.check_whole_account(Resource::Domains)?;
    let filter = call.list_filter(Resource::Domains, &query.pagination().sorted(query.sort))?;
    let mut conn = store::acquire(&app.db).await?;
    let rows = store::domains::list_domains(&mut conn, call.account_id, &filter).await?;
    let now = call.now;
    Ok(call.list(rows, &filter, |row| view(&app, row, now)))
}

async fn create(
    call: Call<scope::DomainsCreate>,
    State(app): State<App>,
    Json(request): Json<CreateDomainRequest>,
) -> Result<Created<DomainView>, Problem> {
    let own = [app.addresses.base_host(), app.addresses.sites_domain()];
    let domain = domains::read(&request.domain, &own).map_err(|error| Problem::validation(vec![error]))?;
    check_hsts(request.hsts)?;
    call.check_whole_account(Resource::Domains)?;
    call.check_new(Resource::Domains)?;
    let limit = call.limits().custom_domains;
    if limit == 0 {
        return Err(call.plan_restricted("custom domains"));
    }
    let mut tx = store::begin(&app.db).await?;
    // Before the subdomain, as a launch locks them.
    usage::lock(&mut tx, call.account_id).await?;
    let id = app.rng.uuid_v7(call.now);
    check_redirect(&call, &mut tx, id, request.redirect_to).await?;
    let new = NewDomain {
        id,
        domain,
        subdomain_id: call.subdomain(&mut tx, request.subdomain_id).await?.id,
        challenge: domains::challenge(&app.rng.bytes()),
        redirect_to: request.redirect_to,
        hsts_max_age: request.hsts.map(|hsts| hsts.max_age),
        hsts_include_subdomains: request.hsts.is_some_and(|hsts| hsts.include_sub_domains),
        created_at: call.now,
    };
    if !store::domains::insert_domain(&mut tx, call.account_id, &new).await? {
        let detail = format!("this account already has the domain {}", new.domain);
        return Err(Problem::new(Code::Conflict, detail).hint("find it with GET /api/account/domains"));
    }
    if !usage::reserve(&mut tx, call.account_id, Counter::Domains, limit).await? {
        return Err(call.count_exceeded(&mut tx, Counter::Domains).await);
    }
    let created = view(&app, find(&call, &mut tx, id).await?, call.now);
    call.set_changed(Resource::Domains, id, &new.domain);
    call.commit(&app, tx, vec![]).await?;
    let hint = created.hint().unwrap_or_default();
    let next = call.suggestions(&app, After::Domain { id, hint: &hint }).await;
    Ok(call.created(created).with_next(next))
}

async fn update(
    call: Call<scope::DomainsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(request): Json<UpdateDomainRequest>,
) -> Result<Reply<DomainView>, Problem> {
    request.check()?;
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Domains, id).await?;
    if let Some(subdomain_id) = request.subdomain_id {
        call.check_id(&mut tx, Resource::Subdomains, subdomain_id).await?;
    }
    check_redirect(&call, &mut tx, id, request.redirect_to.flatten()).await?;
    let before = find(&call, &mut tx, id).await?;
    store::domains::update_domain(&mut tx, call.account_id, id, &request.change(&before)).await?;
    let domain = find(&call, &mut tx, id).await?;
    call.commit(&app, tx, vec![Change::Host { host: domain.domain.clone() }]).await?;
    let now = call.now;
    Ok(call.reply(view(&app, domain, now)))
}

impl UpdateDomainRequest {
    fn check(&self) -> Result<(), Problem> {
        check_hsts(self.hsts.flatten())?;
        if self.subdomain_id.is_none() && self.redirect_to.is_none() && self.hsts.is_none() {
            let rule = "give subdomainId, redirectTo or hsts";
            let error = domain::FieldError::new("subdomainId", "required", rule);
            return Err(Problem::validation(vec![error]));
        }
        Ok(())
    }

    fn change(&self, before: &Domain) -> DomainChange {
        let hsts = self.hsts.unwrap_or_else(|| {
            let include_sub_domains = before.hsts_include_subdomains;
            before.hsts_max_age.map(|max_age| Hsts { max_age, include_sub_domains })
        });
        DomainChange {
            subdomain_id: self.subdomain_id.unwrap_or(before.subdomain_id),
            redirect_to: self.redirect_to.unwrap_or(before.redirect_to),
            hsts_max_age: hsts.map(|hsts| hsts.max_age),
            hsts_include_subdomains: hsts.is_some_and(|hsts| hsts.include_sub_domains),
        }
    }
}

async fn delete(
    call: Call<scope::DomainsDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Domains, id).await?;
    let deleted = store::domains::delete_domain(&mut tx, call.account_id, id).await?;
    let (host, redirecting) = deleted.ok_or_else(|| Problem::not_found("domain"))?;
    usage::release(&mut tx, call.account_id, Counter::Domains).await?;
    let mut changes: Vec<_> = redirecting.into_iter().map(|host| Change::Host { host }).collect();
    if store::domains::delete_certificate(&mut tx, &host).await? {
        changes.push(Change::Certificate { name: host.clone() });
    }
    changes.push(Change::Host { host });
    call.commit(&app, tx, changes).await?;
    Ok(call.reply(Deletion::now()))
}
