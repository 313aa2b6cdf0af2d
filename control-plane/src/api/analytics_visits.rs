//! Visits one by one, and who is there right now.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::analytics::{ACTIVE_FOR, AskedVisits, PAGE_DEFAULT, PAGE_MAX, Range, hash, read_visits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use warehouse::VisitSeen;
use web::{Problem, Query, Reply};

use super::analytics_views::{ask, asked_about};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AskedNow {
    site_id: Uuid,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Now {
    /// Visitors with a page view or custom event in the last five minutes. Counted anew for every call; what is
    /// sent is there to be counted after a second or two.
    active_visitors: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AskedSessions {
    site_id: Uuid,
    /// Whole days of the site's time zone, at most 7; `7d` unless told otherwise. Visits are listed that were going
    /// on at some time of it.
    #[schemars(extend("enum" = ["today", "7d", "custom"]))]
    period: Option<String>,
    /// First day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// Last day, when the period is custom.
    #[schemars(extend("format" = "date"))]
    to: Option<String>,
    /// Only visits with so many page views; 2 unless told otherwise.
    #[schemars(range(min = 0), extend("default" = 2))]
    min_pages: Option<i64>,
    #[schemars(range(min = 1, max = PAGE_MAX), extend("default" = PAGE_DEFAULT))]
    limit: Option<i64>,
    /// So many are passed over, the newest first.
    #[schemars(range(min = 0), extend("default" = 0))]
    offset: Option<i64>,
    #[serde(rename = "filter.country")]
    country: Option<String>,
    #[serde(rename = "filter.city")]
    city: Option<String>,
    #[serde(rename = "filter.region")]
    region: Option<String>,
    #[serde(rename = "filter.device")]
    device: Option<String>,
}

impl AskedSessions {
    fn asked(&self) -> AskedVisits<'_> {
        let filters = [
            ("country", &self.country),
            ("city", &self.city),
            ("region", &self.region),
            ("device", &self.device),
        ];
        AskedVisits {
            period: self.period.as_deref(),
            from: self.from.as_deref(),
            to: self.to.as_deref(),
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
pub(super) struct Sessions {
    /// The newest first.
    sessions: Vec<Session>,
    /// How many there are in all.
    total: u64,
    has_more: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Session {
    /// Names the visit, and tells nothing of its visitor.
    session_hash: String,
    /// In the order they were viewed; the first 1,000.
    pages: Vec<Page>,
    /// All page views of the visit, those outside of the period too.
    page_count: u32,
    /// Whole seconds from the first event to the last, engagement with the last page included.
    duration: i64,
    /// Null where unknown, as the next three.
    country: Option<String>,
    city: Option<String>,
    region: Option<String>,
    device: Option<String>,
    /// Path of the first page; null if none was viewed.
    entry_page: Option<String>,
    /// Path of the last page.
    exit_page: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Page {
    /// Its path.
    url: String,
    timestamp: DateTime<Utc>,
}

pub(super) async fn realtime(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(asked): Query<AskedNow>,
) -> Result<Reply<Now>, Problem> {
    let (site, ()) = asked_about(&app, &call, asked.site_id, |_| Ok(())).await?;
    let range = Range { start: call.now - ACTIVE_FOR, end: call.now };
    let active_visitors =
        ask(&app, &call, site.id, |questions| async move { questions.active_visitors(range).await }).await?;
    Ok(call.reply(Now { active_visitors }))
}

pub(super) async fn sessions(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(asked): Query<AskedSessions>,
) -> Result<Reply<Sessions>, Problem> {
    let (site, wanted) =
        asked_about(&app, &call, asked.site_id, |zone| read_visits(&asked.asked(), call.now, zone)).await?;
    let offset = u64::from(wanted.offset);
    let seen = ask(&app, &call, site.id, |questions| async move { questions.visits(&wanted).await }).await?;
    let shown = offset + u64::try_from(seen.visits.len()).unwrap_or_default();
    let sessions: Vec<Session> = seen.visits.into_iter().map(|visit| view(site.id, visit)).collect();
    let has_more = !sessions.is_empty() && shown < seen.total;
    Ok(call.reply(Sessions { sessions, total: seen.total, has_more }))
}

fn view(site_id: Uuid, visit: VisitSeen) -> Session {
    let known = |text: String| (!text.is_empty()).then_some(text);
    Session {
        session_hash: hash(site_id, visit.visitor, visit.start),
        pages: visit.pages.into_iter().map(|page| Page { url: page.path, timestamp: page.at }).collect(),
        page_count: visit.page_views,
        duration: (visit.ended - visit.start).num_seconds(),
        country: known(visit.country),
        city: known(visit.city),
        region: known(visit.region),
        device: known(visit.device),
        entry_page: known(visit.entry_page),
        exit_page: known(visit.exit_page),
    }
}
