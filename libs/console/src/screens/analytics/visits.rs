//! Single visits, the newest first.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde::Serialize;
use serde_json::Value;

use super::period::Period;
use super::site_page::{root, site_wall};
use crate::api_client::Call;
use crate::api_client::operations::{ANALYTICS_READ, ANALYTICS_SESSIONS};
use crate::formatting::numbers;
use crate::formatting::times::{Wall, parse};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Visits on a page.
const ROWS: u64 = 25;
/// The periods: value and label. Visits are listed for a week at most.
const PERIODS: [(&str, &str); 2] = [("today", "Today"), ("7d", "7 days")];
/// Filters with their labels.
const FILTERS: [(&str, &str); 4] =
    [("country", "Country"), ("region", "Region"), ("city", "City"), ("device", "Device")];
/// The fewest page views of a visit: value and label.
const LENGTHS: [(&str, &str); 3] =
    [("0", "All visits"), ("2", "Two pages or more"), ("5", "Five pages or more")];

/// A visit, as the page shows it.
#[derive(Debug, Serialize)]
struct VisitRow {
    at: Value,
    title: String,
    /// `4 pages · 2 m 12 s · from google.com · Berlin, DE · mobile`
    facts: String,
    pages: Vec<PageRow>,
    /// Page views that the API leaves out.
    more: u64,
}

#[derive(Debug, Serialize)]
struct PageRow {
    path: String,
    at: String,
}

/// Shows the visits of a site.
pub(crate) async fn list(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let site_id = path.get("id");
    let period = Period::or(&query, "7d");
    let offset = query.get("offset").and_then(|offset| offset.parse::<u64>().ok()).unwrap_or_default();
    let fewest = query.get("minPages").unwrap_or(LENGTHS[0].0);
    let call = Call::of(&ANALYTICS_SESSIONS)
        .query("siteId", site_id)
        .query("minPages", fewest)
        .query("limit", &ROWS.to_string())
        .query("offset", &offset.to_string());
    let filters: Vec<_> =
        FILTERS.iter().filter_map(|(name, label)| Some((*name, *label, query.get(name)?))).collect();
    let call = filters
        .iter()
        .fold(period.add_to(call), |call, (name, _, value)| call.query(&format!("filter.{name}"), value));
    let (account, site, list) = join!(
        console.account(&viewer),
        console.call(&viewer, Call::of(&ANALYTICS_READ).path("id", site_id)),
        console.call(&viewer, call),
    );
    let wall = site_wall(&console, &site);
    let visits = list.as_ref().ok().and_then(|list| list["sessions"].as_array());
    let rows: Vec<_> = visits.into_iter().flatten().map(|visit| row(visit, wall)).collect();
    let next = offset + rows.len() as u64;
    Page::new(Section::Analytics, "analytics/visits.html")
        .main("site", &site)
        .panel("list", &list)
        .with("root", root(site_id))
        .with("site_zone", wall.zone.name())
        .with("period", &period)
        .with("periods", PERIODS)
        .with("lengths", LENGTHS)
        .with("fewest", fewest)
        .with("filters", filters)
        .with("first", offset + 1)
        .with("last", next)
        .with("previous", (offset > 0).then(|| offset.saturating_sub(ROWS).to_string()))
        .with("next", next.to_string())
        .with("rows", rows)
        .respond(&console, &viewer, &account)
}

fn row(visit: &Value, wall: Wall) -> VisitRow {
    let text = |name: &str| visit[name].as_str();
    let count = visit["pageCount"].as_u64().unwrap_or_default();
    let title = match (text("entryPage"), text("exitPage")) {
        (Some(entry), Some(exit)) if count > 1 => format!("{entry} → {exit}"),
        (Some(entry), _) => entry.to_owned(),
        _ => "No page viewed".to_owned(),
    };
    let place: Vec<_> = ["city", "country"].into_iter().filter_map(text).collect();
    let facts = [
        Some(format!("{count} {}", if count == 1 { "page" } else { "pages" })),
        Some(numbers::duration(visit["duration"].as_f64().unwrap_or_default())),
        text("referrer").map(|host| format!("from {host}")).or_else(|| text("channel").map(str::to_owned)),
        (!place.is_empty()).then(|| place.join(", ")),
        text("device").map(str::to_owned),
    ];
    let pages = visit["pages"].as_array().into_iter().flatten();
    let clock = |at: &str| {
        let at = parse(at).map(|at| at.with_timezone(&wall.zone).format("%-H:%M:%S").to_string());
        at.unwrap_or_default()
    };
    let pages: Vec<_> = pages
        .map(|page| PageRow {
            path: page["url"].as_str().unwrap_or_default().to_owned(),
            at: clock(page["timestamp"].as_str().unwrap_or_default()),
        })
        .collect();
    VisitRow {
        at: visit["startedAt"].clone(),
        title,
        facts: facts.into_iter().flatten().collect::<Vec<_>>().join(" · "),
        more: count.saturating_sub(pages.len() as u64),
        pages,
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_visit_reads_in_two_lines() {
        let wall = Wall { now: parse("2026-11-22T12:00:00Z").unwrap(), zone: Tz::Europe__Berlin };
        let visit = json!({ "startedAt": "2026-11-22T10:00:00Z", "entryPage": "/", "exitPage": "/pricing", "pageCount": 2,
            "duration": 132, "referrer": "google.com", "channel": "Organic Search", "country": "DE", "city": "Berlin",
            "device": "mobile", "pages": [{ "url": "/", "timestamp": "2026-11-22T10:00:00Z" }] });
        let shown = row(&visit, wall);
        assert_eq!(shown.title, "/ → /pricing");
        assert_eq!(shown.facts, "2 pages · 2 m 12 s · from google.com · Berlin, DE · mobile");
        assert_eq!((shown.pages[0].at.as_str(), shown.more), ("11:00:00", 1));
        let empty = row(&json!({ "pageCount": 0, "duration": 0, "channel": "Direct" }), wall);
        assert_eq!(
            (empty.title.as_str(), empty.facts.as_str()),
            ("No page viewed", "0 pages · 0 s · Direct")
        );
    }
}
