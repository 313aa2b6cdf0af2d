//! Analytics sites in responses, and the steps shared by all queries.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::FieldError;
use domain::analytics::{Lifetime, Zone};
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::Serialize;
use store::Conn;
use store::sites::Site;
use uuid::Uuid;
use warehouse::SiteAnalytics;
use web::Problem;

use crate::App;
use crate::call::Call;
use crate::query_admission::query_problem;

/// Most field errors returned for one query.
const ERRORS_MAX: usize = 20;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct AnalyticsSiteView {
    pub(super) id: Uuid,
    /// Public token that events carry.
    site_token: String,
    /// Display name.
    name: String,
    /// Host name of the site; null if none is set.
    domain: Option<String>,
    subdomain_id: Option<Uuid>,
    folder_id: Option<Uuid>,
    /// IANA name of the time zone in which the site's days start.
    timezone: String,
    /// Whether to ignore visitors if their browser asks not to be tracked (`DNT`, `Sec-GPC`).
    honour_dnt: bool,
    /// Whether the part of an address after `#` distinguishes pages.
    hash_routing: bool,
    /// How long a returning visitor can be recognized, for retention only: `day`, `week`, `month` or `quarter`.
    visitor_id_lifetime: Lifetime,
    created_at: DateTime<Utc>,
}

/// A site with its event count.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct AnalyticsSiteCountsView {
    #[serde(flatten)]
    site: AnalyticsSiteView,
    /// Number of events counted so far; null if the count is unavailable.
    event_count: Option<u64>,
}

/// A site with its event count and the events that were dropped.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnalyticsSiteDetailView {
    #[serde(flatten)]
    site: AnalyticsSiteCountsView,
    /// Events dropped in the last 24 hours, by reason: `bot`, `quota`, …
    dropped: BTreeMap<String, i64>,
}

impl From<Site> for AnalyticsSiteView {
    fn from(site: Site) -> Self {
        Self {
            id: site.id,
            site_token: site.site_token,
            name: site.name,
            domain: site.domain,
            subdomain_id: site.subdomain_id,
            folder_id: site.folder_id,
            timezone: site.timezone,
            honour_dnt: site.honour_dnt,
            hash_routing: site.hash_routing,
            visitor_id_lifetime: Lifetime::parse(&site.visitor_id_lifetime).unwrap_or_default(),
            created_at: site.created_at,
        }
    }
}

/// Returns a site of the account that the caller may access.
pub(super) async fn find<S>(call: &Call<S>, conn: &mut Conn, id: Uuid) -> Result<Site, Problem> {
    call.check_id(conn, Resource::Analytics, id).await?;
    let site = store::sites::find_site(conn, call.account_id, id).await?;
    site.ok_or_else(|| Problem::not_found("analytics site"))
}

/// Returns the queried site, and the query parsed in the site's time zone.
pub(super) async fn resolve_query<S, Q>(
    app: &App,
    call: &Call<S>,
    id: Uuid,
    read: impl Fn(Zone) -> Result<Q, Vec<FieldError>>,
) -> Result<(Site, Q), Problem> {
    // Validates in UTC before the site is looked up: errors don't depend on the time zone.
    read(Zone::UTC).map_err(refused)?;
    let mut conn = store::acquire(&app.db).await?;
    let site = find(call, &mut conn, id).await?;
    drop(conn);
    // The zone was valid when it was set. If it has since been removed from the database, UTC answers the query.
    let zone = site.timezone.parse().unwrap_or(Zone::UTC);
    Ok((site, read(zone).map_err(refused)?))
}

/// Returns the first errors only: one query can have thousands.
fn refused(mut errors: Vec<FieldError>) -> Problem {
    errors.truncate(ERRORS_MAX);
    Problem::validation(errors)
}

/// Runs a query about a site once the account has a permit, which is held until the result is there. If the caller
/// disconnects, the query is canceled and the permit released.
pub(super) async fn run_query<'a, S, T, F>(
    app: &'a App,
    call: &Call<S>,
    site_id: Uuid,
    query: impl FnOnce(SiteAnalytics<'a>) -> F,
) -> Result<T, Problem>
where
    F: Future<Output = Result<T, warehouse::Error>>,
{
    let _permit = app.query_admission.acquire(call.account_id).await?;
    let questions = app.warehouse.analytics(site_id, app.query_admission.limits(), call.now);
    query(questions).await.map_err(query_problem)
}

/// Returns a site with its counts.
pub(super) async fn find_detail<S>(
    app: &App,
    call: &Call<S>,
    id: Uuid,
) -> Result<AnalyticsSiteDetailView, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let site = find(call, &mut conn, id).await?;
    drop(conn);
    let dropped = find_drops(app, call, id).await?;
    let site = with_event_counts(app, call, vec![site])
        .await
        .pop()
        .ok_or_else(|| Problem::not_found("analytics site"))?;
    Ok(AnalyticsSiteDetailView { site, dropped })
}

/// Returns how many events of a site were dropped in the last 24 hours, in whole hours, by reason.
pub(super) async fn find_drops<S>(
    app: &App,
    call: &Call<S>,
    id: Uuid,
) -> Result<BTreeMap<String, i64>, Problem> {
    let since = call.now - TimeDelta::hours(24);
    let mut conn = store::acquire(&app.db).await?;
    let drops = store::dropped_events::list_dropped_events(&mut conn, call.account_id, id, since).await?;
    Ok(drops.into_iter().map(|one| (one.reason, one.count)).collect())
}

/// Adds event counts to sites once the account has a permit. If counting fails, the sites are returned without
/// counts.
pub(in crate::api) async fn with_event_counts<S>(
    app: &App,
    call: &Call<S>,
    sites: Vec<Site>,
) -> Vec<AnalyticsSiteCountsView> {
    if sites.is_empty() {
        return vec![];
    }
    let ids: Vec<Uuid> = sites.iter().map(|site| site.id).collect();
    let counts = async {
        let _permit = app.query_admission.acquire(call.account_id).await?;
        app.warehouse.count_events_by_site(&ids).await.map_err(query_problem)
    };
    let counts = counts.await.inspect_err(|problem| {
        tracing::warn!(code = problem.code().as_str(), "returning analytics sites without event counts");
    });
    let counts = counts.ok();
    let count = |id| counts.as_ref().map(|counts| counts.get(&id).copied().unwrap_or_default());
    sites
        .into_iter()
        .map(|site| AnalyticsSiteCountsView { event_count: count(site.id), site: site.into() })
        .collect()
}

/// The HTML tag that makes a page report its visits.
pub(super) fn script_tag(app: &App, site: &Site) -> String {
    let (base, token) = (app.addresses.base(), &site.site_token);
    let hash = if site.hash_routing { " data-hash" } else { "" };
    format!(r#"<script defer src="{base}/script.js" data-site="{token}"{hash}></script>"#)
}
