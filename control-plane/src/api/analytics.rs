//! Analytics: sites whose visits are counted, and questions about them.

use axum::extract::State;
use contract::Change;
use domain::analytics::Metric;
use domain::scopes::Resource;
use domain::{Cursor, sites};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::sites::NewSite;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Created, Json, Listed, Paging, Path, Problem, Query, Reply};

use super::analytics_edits::{delete, update};
use super::analytics_figures::query;
use super::analytics_funnel::funnel;
use super::analytics_retention::retention;
use super::analytics_views::{CountedSite, SiteView, WatchedSite, counted, find, script_tag, watched};
use super::analytics_visits::{realtime, sessions};
use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("analytics")
        .patch(
            "/api/analytics/sites/{id}",
            update,
            "Change a site's name, domain, time zone or privacy rules",
        )
        .extension()
        .post("/api/analytics/sites", create, "Start counting visits of a site")
        .get("/api/analytics/sites", list, "List analytics sites with their event counts")
        .get("/api/analytics/sites/{id}", read, "Read an analytics site, with what was not counted and why")
        .delete("/api/analytics/sites/{id}", delete, "Delete an analytics site and all its events for good")
        .get("/api/analytics/query", query, "Ask for a figure over a period")
        .get("/api/analytics/realtime", realtime, "Ask who is there right now")
        .get("/api/analytics/sessions", sessions, "List visits with the pages seen in each")
        .post("/api/analytics/funnel", funnel, "Ask how many visits went through a series of steps")
        .post("/api/analytics/retention", retention, "Ask how many visitors came back in later periods")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WantedSite {
    #[schemars(length(min = 1, max = sites::NAME_CHARS_MAX), regex(pattern = r"\S"))]
    name: String,
    /// The host it is at.
    #[schemars(length(max = 253), extend("format" = "idn-hostname"))]
    domain: Option<String>,
    /// A subdomain of the account whose pages are counted by themselves.
    subdomain_id: Option<Uuid>,
    /// The folder it lies in.
    folder_id: Option<Uuid>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SitesQuery {
    /// Only sites in this folder.
    folder_id: Option<Uuid>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    #[schemars(extend("format" = "cursor"))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NewlyCounted {
    site: SiteView,
    /// Put this into the pages of a site that is not hosted here; those that are need nothing.
    script_tag: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Sites {
    sites: Vec<CountedSite>,
    #[serde(flatten)]
    listed: Listed,
}

async fn create(
    call: Call<scope::AnalyticsCreate>,
    State(app): State<App>,
    Json(wanted): Json<WantedSite>,
) -> Result<Created<NewlyCounted>, Problem> {
    let complaints = sites::check(&wanted.name, wanted.domain.as_deref());
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let limit = call.limits().projects;
    let mut tx = store::begin(&app.db).await?;
    let folder_id = call.new_resource_folder(&mut tx, Resource::Analytics, wanted.folder_id).await?;
    if let Some(id) = wanted.subdomain_id {
        call.check_id(&mut tx, Resource::Subdomains, id).await?;
        // It counts every page there, so that a key that is kept to some would see visits of the others.
        call.check_whole_account(Resource::Subdomains)?;
        call.check_new(Resource::Pages)?;
    }
    let new = NewSite {
        id: app.rng.uuid_v7(call.now),
        site_token: sites::token(&app.rng.bytes()),
        name: wanted.name.trim().to_owned(),
        domain: wanted.domain,
        subdomain_id: wanted.subdomain_id,
        folder_id,
        created_at: call.now,
    };
    if !usage::take(&mut tx, call.account_id, Counter::Projects, limit).await? {
        return Err(call.quota_exceeded("projects", limit));
    }
    if !store::sites::insert_site(&mut tx, call.account_id, &new).await? {
        return Err(Problem::new(Code::Conflict, "this subdomain already has an analytics site"));
    }
    let site = find(&call, &mut tx, new.id).await?;
    let change = Change::AnalyticsSite { site_token: new.site_token, subdomain_id: new.subdomain_id };
    app.commit(tx, vec![change]).await?;

    let ask = json!({"siteId": site.id, "metric": Metric::PageViews.word(), "period": "today"});
    let made = NewlyCounted { script_tag: script_tag(&app, &site.site_token), site: site.into() };
    Ok(call.created(made).next("ask", "analytics.query", ask, "See how many pages were viewed today"))
}

async fn list(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(query): Query<SitesQuery>,
) -> Result<Reply<Sites>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let part = call
        .list_filter_in(
            &mut conn,
            Resource::Analytics,
            &Paging::new(query.limit, query.cursor),
            query.folder_id,
        )
        .await?;
    let mut rows = store::sites::list_sites(&mut conn, call.account_id, &part).await?;
    drop(conn);
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
    let sites = counted(&app, &call, rows).await;
    Ok(call.reply(Sites { sites, listed: listed.clone() }).part(listed))
}

async fn read(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<WatchedSite>, Problem> {
    let site = watched(&app, &call, id).await?;
    Ok(call.reply(site))
}
