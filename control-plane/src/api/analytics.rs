//! Analytics: sites whose visits are counted, and questions about them.

use axum::extract::State;
use chrono::{DateTime, Utc};
use contract::Change;
use domain::analytics::{Asked, Metric, Period, read_question};
use domain::scopes::Resource;
use domain::{Cursor, sites};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::sites::{NewSite, Site};
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Created, Json, Listed, Paging, Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("analytics")
        .post("/api/analytics/sites", create, "Start counting visits of a site")
        .get("/api/analytics/sites", list, "List analytics sites with their event counts")
        .get("/api/analytics/sites/{id}", read, "Read an analytics site")
        .get("/api/analytics/query", query, "Ask for a figure over a period")
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
struct SiteView {
    id: Uuid,
    /// Public: events carry it.
    site_token: String,
    name: String,
    domain: Option<String>,
    subdomain_id: Option<Uuid>,
    folder_id: Option<Uuid>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OneSite {
    site: SiteView,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CountedSite {
    #[serde(flatten)]
    site: SiteView,
    /// Events counted so far.
    event_count: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Sites {
    sites: Vec<CountedSite>,
    #[serde(flatten)]
    listed: Listed,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Question {
    site_id: Uuid,
    /// `page_views` (default) or `unique_visitors`.
    #[schemars(extend("enum" = Metric::ALL.map(Metric::word)))]
    metric: Option<String>,
    /// `today`, `7d` (default), `30d`, `90d` or `custom`.
    #[schemars(extend("enum" = Period::ALL.map(Period::word)))]
    period: Option<String>,
    /// First day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// Last day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    to: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Answer {
    metric: String,
    total: u64,
    /// The first instant that counts.
    from: DateTime<Utc>,
    /// The first instant that doesn't.
    to: DateTime<Utc>,
}

async fn create(
    call: Call<scope::AnalyticsCreate>,
    State(app): State<App>,
    Json(wanted): Json<WantedSite>,
) -> Result<Created<OneSite>, Problem> {
    let complaints = sites::check(&wanted.name, wanted.domain.as_deref());
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let limit = call.limits().projects;
    let mut tx = store::begin(&app.db).await?;
    let folder_id = call.folder_of_new(&mut tx, Resource::Analytics, wanted.folder_id).await?;
    if let Some(id) = wanted.subdomain_id {
        call.check_id(&mut tx, Resource::Subdomains, id).await?;
        // It counts every page there, so that a key that is kept to some would see visits of the others.
        call.check_whole_account(Resource::Subdomains)?;
        call.check_new(Resource::Pages)?;
    }
    let new = NewSite {
        id: app.rng.uuid_v7(call.now),
        site_token: sites::token(&app.rng.bytes()),
        name: wanted.name,
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
    let change = Change::AnalyticsSite { site_token: new.site_token.clone(), subdomain_id: new.subdomain_id };
    app.commit(tx, vec![change]).await?;

    let site = SiteView {
        id: new.id,
        site_token: new.site_token,
        name: new.name,
        domain: new.domain,
        subdomain_id: new.subdomain_id,
        folder_id: new.folder_id,
        created_at: new.created_at,
    };
    let ask = json!({"siteId": site.id, "metric": Metric::PageViews.word(), "period": "today"});
    Ok(call.created(OneSite { site }).next(
        "ask",
        "analytics.query",
        ask,
        "See how many pages were viewed today",
    ))
}

async fn list(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(query): Query<SitesQuery>,
) -> Result<Reply<Sites>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let part = call
        .part_in(&mut conn, Resource::Analytics, &Paging::new(query.limit, query.cursor), query.folder_id)
        .await?;
    let mut rows = store::sites::list_sites(&mut conn, call.account_id, &part).await?;
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
    Ok(call.reply(Sites { sites: counted(&app, rows).await?, listed: listed.clone() }).part(listed))
}

async fn read(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<CountedSite>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Analytics, id).await?;
    let site = store::sites::find_site(&mut conn, call.account_id, id).await?;
    let site = counted(&app, site.into_iter().collect()).await?.pop();
    Ok(call.reply(site.ok_or_else(|| Problem::not_found("analytics site"))?))
}

async fn query(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(question): Query<Question>,
) -> Result<Reply<Answer>, Problem> {
    let asked = Asked {
        metric: question.metric.as_deref(),
        period: question.period.as_deref(),
        from: question.from.as_deref(),
        to: question.to.as_deref(),
    };
    let asked = read_question(asked, call.now, &Utc).map_err(Problem::validation)?;
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Analytics, question.site_id).await?;
    let total = match asked.metric {
        Metric::PageViews => app.warehouse.count_page_views(question.site_id, asked.range).await?,
        Metric::UniqueVisitors => app.warehouse.count_unique_visitors(question.site_id, asked.range).await?,
    };
    let answer = Answer {
        metric: asked.metric.word().to_owned(),
        total,
        from: asked.range.start,
        to: asked.range.end,
    };
    Ok(call.reply(answer))
}

async fn counted(app: &App, sites: Vec<Site>) -> Result<Vec<CountedSite>, Problem> {
    let ids: Vec<Uuid> = sites.iter().map(|site| site.id).collect();
    let counts = app.warehouse.count_events_by_site(&ids).await?;
    let view = |site: Site| CountedSite {
        event_count: counts.get(&site.id).copied().unwrap_or_default(),
        site: SiteView {
            id: site.id,
            site_token: site.site_token,
            name: site.name,
            domain: site.domain,
            subdomain_id: site.subdomain_id,
            folder_id: site.folder_id,
            created_at: site.created_at,
        },
    };
    Ok(sites.into_iter().map(view).collect())
}
