//! Single visits, and the visitors of the last minutes.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::analytics::{
    ACTIVE_FOR, PAGE_DEFAULT, PAGE_MAX, Range, RawDays, RawVisitsQuery, hash, parse_visits_query,
};
use domain::{ListBudget, json_bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use warehouse::VisitSummary;
use web::{Problem, Query, Reply};

use super::views::{resolve_query, run_query};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RealtimeQuery {
    /// The analytics site to query.
    site_id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RealtimeResponse {
    /// Visitors with a page view or custom event in the last five minutes. Counted anew for each call; an event is
    /// included one or two seconds after it was sent.
    active_visitors: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SessionsQuery {
    /// The analytics site to query.
    site_id: Uuid,
    /// Whole days in the site's time zone, at most 7; default `7d`. Lists visits that were active at any time in the
    /// period.
    #[schemars(extend("enum" = ["today", "7d", "custom"]))]
    period: Option<String>,
    /// First day of a `custom` period.
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// Last day of a `custom` period.
    #[schemars(extend("format" = "date"))]
    to: Option<String>,
    /// Minimum number of page views of a visit; default 2.
    #[schemars(range(min = 0), extend("default" = 2))]
    min_pages: Option<i64>,
    /// Maximum number of visits in the response.
    #[schemars(range(min = 1, max = PAGE_MAX), extend("default" = PAGE_DEFAULT))]
    limit: Option<i64>,
    /// Number of visits to skip, newest first.
    #[schemars(range(min = 0), extend("default" = 0))]
    offset: Option<i64>,
    /// Only visits from this country.
    #[serde(rename = "filter.country")]
    country: Option<String>,
    /// Only visits from this city.
    #[serde(rename = "filter.city")]
    city: Option<String>,
    /// Only visits from this region.
    #[serde(rename = "filter.region")]
    region: Option<String>,
    /// Only visits with this type of device.
    #[serde(rename = "filter.device")]
    device: Option<String>,
}

impl SessionsQuery {
    fn raw(&self) -> RawVisitsQuery<'_> {
        let filters = [
            ("country", &self.country),
            ("city", &self.city),
            ("region", &self.region),
            ("device", &self.device),
        ];
        RawVisitsQuery {
            days: RawDays::new(self.period.as_deref(), self.from.as_deref(), self.to.as_deref()),
            min_pages: self.min_pages,
            limit: self.limit,
            offset: self.offset,
            filters: filters
                .into_iter()
                .filter_map(|(word, value)| Some((word, value.as_deref()?)))
                .collect(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionListResponse {
    /// Newest first.
    sessions: Vec<Session>,
    /// Number of visits that match, over all pages of the list.
    total: u64,
    /// Whether there are more visits after these. The list ends at about 1 MiB, so the next `offset` is this one plus the
    /// number of visits here.
    has_more: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Session {
    /// Identifies the visit; reveals nothing about the visitor.
    session_hash: String,
    /// Time of the first event.
    started_at: DateTime<Utc>,
    /// The first 1,000 page views, in order.
    pages: Vec<SessionPage>,
    /// All page views of the visit, including those outside the period.
    page_count: u32,
    /// Whole seconds from the first event to the last, including engagement with the last page.
    duration: i64,
    /// Country of the visitor; null if unknown.
    country: Option<String>,
    /// City of the visitor; null if unknown.
    city: Option<String>,
    /// Region of the visitor; null if unknown.
    region: Option<String>,
    /// Type of the visitor's device; null if unknown.
    device: Option<String>,
    /// External host that referred the visit; null for none.
    referrer: Option<String>,
    /// Channel of the visit, such as `Organic Search`; null if unknown.
    channel: Option<String>,
    /// Path of the first page; null if no page was viewed.
    entry_page: Option<String>,
    /// Path of the last page; null if no page was viewed.
    exit_page: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SessionPage {
    /// Path of the page.
    url: String,
    /// When the page was viewed.
    timestamp: DateTime<Utc>,
}

pub(super) async fn realtime(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(query): Query<RealtimeQuery>,
) -> Result<Reply<RealtimeResponse>, Problem> {
    let (site, ()) = resolve_query(&app, &call, query.site_id, |_| Ok(())).await?;
    let range = Range { start: call.now - ACTIVE_FOR, end: call.now };
    let active_visitors =
        run_query(&app, &call, site.id, |questions| async move { questions.active_visitors(range).await })
            .await?;
    Ok(call.reply(RealtimeResponse { active_visitors }))
}

pub(super) async fn sessions(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(query): Query<SessionsQuery>,
) -> Result<Reply<SessionListResponse>, Problem> {
    let (site, filter) =
        resolve_query(&app, &call, query.site_id, |zone| parse_visits_query(&query.raw(), call.now, zone))
            .await?;
    let offset = u64::from(filter.offset);
    let found =
        run_query(&app, &call, site.id, |questions| async move { questions.visits(&filter).await }).await?;
    let mut budget = ListBudget::new(i64::try_from(found.visits.len()).unwrap_or(i64::MAX));
    let sessions = found.visits.into_iter().map(|visit| view(site.id, visit));
    let sessions: Vec<Session> = sessions.take_while(|session| budget.admits(json_bytes(session))).collect();
    let shown = offset + u64::try_from(sessions.len()).unwrap_or_default();
    let has_more = !sessions.is_empty() && shown < found.total;
    Ok(call.reply(SessionListResponse { sessions, total: found.total, has_more }))
}

fn view(site_id: Uuid, visit: VisitSummary) -> Session {
    let known = |text: String| (!text.is_empty()).then_some(text);
    Session {
        session_hash: hash(site_id, visit.visitor, visit.start),
        started_at: visit.start,
        pages: visit
            .pages
            .into_iter()
            .map(|page| SessionPage { url: page.path, timestamp: page.at })
            .collect(),
        page_count: visit.page_views,
        duration: (visit.ended - visit.start).num_seconds(),
        country: known(visit.country),
        city: known(visit.city),
        region: known(visit.region),
        device: known(visit.device),
        referrer: known(visit.referrer),
        channel: known(visit.channel),
        entry_page: known(visit.entry_page),
        exit_page: known(visit.exit_page),
    }
}
