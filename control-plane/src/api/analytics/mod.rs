//! Analytics: sites with counted visits, and queries over their events.

mod drop_off;
mod funnel;
pub(super) mod insert;
mod metrics;
mod overview;
mod parameters;
mod retention;
mod sessions;
mod update;
pub(super) mod views;

use axum::extract::State;
use domain::scopes::Resource;
use domain::sites;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Created, Json, PageInfo, Path, Problem, Query, Reply, Sort};

use self::drop_off::drop_off;
use self::funnel::funnel;
use self::insert::{AnalyticsSiteInput, check_subdomain};
use self::metrics::query;
use self::overview::overview;
use self::retention::retention;
use self::sessions::{realtime, sessions};
use self::update::{delete, update};
use self::views::{
    AnalyticsSiteCountsView, AnalyticsSiteDetailView, AnalyticsSiteView, find_detail, script_tag,
    with_event_counts,
};
use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("analytics")
        .patch(
            "/api/analytics/sites/{id}",
            update,
            "Update an analytics site's name, domain, time zone or privacy settings",
        )
        .get(
            "/api/analytics/overview",
            overview,
            "Get a site's figures, series and top values over a period, each compared with the previous one",
        )
        .extension()
        .post(
            "/api/analytics/funnel/drop-off",
            drop_off,
            "Query the pages that visits viewed after leaving a funnel before one of its steps",
        )
        .extension()
        .post("/api/analytics/sites", create, "Create an analytics site")
        .get("/api/analytics/sites", list, "List analytics sites with their event counts")
        .get("/api/analytics/sites/{id}", read, "Get an analytics site with its event and drop counts")
        .delete("/api/analytics/sites/{id}", delete, "Delete an analytics site and its events permanently")
        .get("/api/analytics/query", query, "Query a metric over a period")
        .get("/api/analytics/realtime", realtime, "Get the number of active visitors")
        .get("/api/analytics/sessions", sessions, "List visits with the pages viewed in each")
        .post("/api/analytics/funnel", funnel, "Query how many visits completed a series of steps")
        .post("/api/analytics/retention", retention, "Query how many visitors returned in later periods")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateAnalyticsSiteRequest {
    /// Display name.
    #[schemars(length(min = 1, max = sites::NAME_CHARS_MAX), regex(pattern = r"\S"))]
    name: String,
    /// Host name of the site.
    #[schemars(length(max = 253), extend("format" = "idn-hostname"))]
    domain: Option<String>,
    /// A subdomain of the account. Its pages get the tracking script by themselves.
    subdomain_id: Option<Uuid>,
    /// Folder to create the site in.
    folder_id: Option<Uuid>,
    /// Whether the part of an address after `#` distinguishes pages, as in `/#/users`; default false. Applies to the pages
    /// hosted here; pages elsewhere have it in their tag, as `data-hash`.
    #[serde(default)]
    hash_routing: bool,
}

web::list_query!(AnalyticsSitesQuery {
    /// Only sites in this folder.
    folder_id: Option<Uuid>,
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AnalyticsSiteTagResponse {
    /// The new site.
    site: AnalyticsSiteView,
    /// Tracking script to add to the pages of a site hosted elsewhere; pages hosted here need nothing.
    script_tag: String,
}

web::list_response!(AnalyticsSiteListResponse { sites: AnalyticsSiteCountsView });

async fn create(
    call: Call<scope::AnalyticsCreate>,
    State(app): State<App>,
    Json(request): Json<CreateAnalyticsSiteRequest>,
) -> Result<Created<AnalyticsSiteTagResponse>, Problem> {
    let errors = sites::check(&request.name, request.domain.as_deref());
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let limit = call.limits().projects;
    let mut tx = store::begin(&app.db).await?;
    let folder_id = call.new_resource_folder(&mut tx, Resource::Analytics, request.folder_id).await?;
    if let Some(id) = request.subdomain_id {
        check_subdomain(&call, &mut tx, id).await?;
    }
    if !usage::reserve(&mut tx, call.account_id, Counter::Projects, limit).await? {
        return Err(call.count_exceeded(&mut tx, Counter::Projects).await);
    }
    let input = AnalyticsSiteInput {
        name: request.name,
        domain: request.domain,
        subdomain_id: request.subdomain_id,
        folder_id,
        hash_routing: request.hash_routing,
    };
    let (site, change) = input.insert(&call, &app, &mut tx).await?;
    call.set_changed(Resource::Analytics, site.id, &site.name);
    call.commit(&app, tx, vec![change]).await?;

    let next = call.suggestions(&app, After::Site { id: site.id }).await;
    let response = AnalyticsSiteTagResponse { script_tag: script_tag(&app, &site), site: site.into() };
    Ok(call.created(response).with_next(next))
}

async fn list(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(query): Query<AnalyticsSitesQuery>,
) -> Result<Reply<AnalyticsSiteListResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let filter = call
        .list_filter_in(
            &mut conn,
            Resource::Analytics,
            &query.pagination().sorted(query.sort),
            query.folder_id,
        )
        .await?;
    let mut rows = store::sites::list_sites(&mut conn, call.account_id, &filter).await?;
    drop(conn);
    let page = PageInfo::truncate(&mut rows, filter.limit, filter.newest_first);
    let sites = with_event_counts(&app, &call, rows).await;
    Ok(call.reply(AnalyticsSiteListResponse { sites, page }).paginated())
}

async fn read(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<AnalyticsSiteDetailView>, Problem> {
    let site = find_detail(&app, &call, id).await?;
    Ok(call.reply(site))
}
