//! Asks for everything that the view of a site shows.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono_tz::Tz;
use futures::future::OptionFuture;
use futures::join;
use http::header;
use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use super::chart::ChartInput;
use super::dropped::dropped;
use super::figures::{Figure, METRICS, Metric, change_in_words};
use super::filters;
use super::mover::mover_in_words;
use super::panels::{ALL_ROWS, PANELS, ROWS};
use super::period::{CHOICES, Period};
use crate::api_client::Call;
use crate::api_client::operations::{
    ANALYTICS_OVERVIEW, ANALYTICS_QUERY, ANALYTICS_READ, ANALYTICS_REALTIME, DEPLOYS_LIST,
};
use crate::formatting::times::{Wall, parse};
use crate::page::{Page, Section, answer_part, redirect};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::{PATH_SEGMENT, UrlQuery};
use crate::viewer::Viewer;

/// Shows a site.
pub(crate) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let (site_id, period, metric) = (path.get("id"), Period::of(&query), Metric::of(query.get("metric")));
    let is_compared = query.get("compare") != Some("off");
    let filters = filters::of(&query);
    let shared = |operation| {
        let call = Call::of(operation).query("siteId", site_id);
        let call = call.query("compare", if is_compared { "true" } else { "false" });
        filters::add_to(period.add_to(call), &filters)
    };
    let overview = shared(&ANALYTICS_OVERVIEW)
        .query("metric", metric.id)
        .query("groupBy", period.interval())
        .query("limit", ROWS);
    let overview = PANELS.iter().fold(overview, |call, panel| call.query(panel.id, panel.dimension(&query)));
    let all = PANELS.iter().find(|panel| panel.is_asked_for_all(&query)).map(|panel| {
        let call = shared(&ANALYTICS_QUERY).query("metric", METRICS[0].id).query("limit", ALL_ROWS);
        console.call(&viewer, call.query("breakdownBy", panel.dimension(&query)))
    });
    let (account, site, active, deploys, overview, all) = join!(
        console.account(&viewer),
        console.call(&viewer, Call::of(&ANALYTICS_READ).path("id", site_id)),
        console.call(&viewer, Call::of(&ANALYTICS_REALTIME).query("siteId", site_id)),
        console.call(&viewer, Call::of(&DEPLOYS_LIST).query("limit", "100")),
        console.call(&viewer, overview),
        OptionFuture::from(all),
    );
    let shown = overview.as_ref().ok();
    let zone = shown.and_then(|overview| overview["timezone"].as_str()?.parse().ok()).unwrap_or(Tz::UTC);
    let wall = Wall { now: console.clock.now(), zone };
    let subdomain_id = site.as_ref().ok().and_then(|site| site["subdomainId"].as_str());
    let deploys = deploys.ok().map(|deploys| deploys_of(deploys, subdomain_id));
    let chart = shown.map(|overview| {
        let (deploys, interval) = (deploys.as_ref(), period.interval());
        ChartInput { metric, overview, deploys, interval, query: &query, wall }.view()
    });
    let panels = PANELS.iter().map(|kind| {
        let all = all.as_ref().filter(|_| kind.is_asked_for_all(&query));
        kind.panel(&query, shown, all)
    });
    Page::new(Section::Analytics, "analytics.html")
        .main("site", &site)
        .panel("active", &active)
        .panel("overview", &overview)
        .with("figures", METRICS.iter().map(|one| Figure::new(one, shown)).collect::<Vec<_>>())
        .with("panels", panels.collect::<Vec<_>>())
        .with("chart", chart)
        .with("metric", metric.id)
        .with("metric_label", metric.label)
        .with("words", shown.and_then(|overview| change_in_words(metric, overview)))
        .with("mover", shown.and_then(mover_in_words))
        .with("period", &period)
        .with("periods", CHOICES)
        .with("is_compared", is_compared)
        .with("filters", &filters)
        .with("dimensions", filters::DIMENSIONS)
        .with("days", shown.and_then(|overview| days_in_words(overview, wall)))
        .with("site_zone", zone.name())
        .with("dropped", shown.map(dropped))
        .with("is_empty", filters.is_empty() && shown.is_some_and(has_no_events))
        .respond(&console, &viewer, &account)
}

/// Returns how many visitors are there now, as text that the page polls.
pub(crate) async fn count_active(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
) -> Response {
    let call = Call::of(&ANALYTICS_REALTIME).query("siteId", path.get("id"));
    match console.call(&viewer, call).await {
        Ok(answer) => {
            let text = format!("{} here now", answer["activeVisitors"].as_u64().unwrap_or_default());
            let response =
                ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text.clone()).into_response();
            answer_part(&console, &viewer, response, &text)
        }
        Err(refusal) => (refusal.status(), refusal.title.clone()).into_response(),
    }
}

/// Adds a filter, which a form names by dimension and value: its parameter has the dimension in its name.
pub(crate) async fn add_filter(
    State(console): State<Console>,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let filter = query.get("dimension").filter(|dimension| filters::label_of(dimension).is_some());
    let added = match (filter, query.get("value")) {
        (Some(dimension), value) => query.with(&format!("filters.{dimension}"), value),
        _ => query.clone(),
    };
    let link = added.with("dimension", None).with("value", None).to_link();
    let id = utf8_percent_encode(path.get("id"), PATH_SEGMENT);
    redirect(&console, &format!("/console/analytics/{id}{link}"), None)
}

/// Returns the deploys of a site, or all if it is not bound to one.
fn deploys_of(mut deploys: Value, subdomain_id: Option<&str>) -> Value {
    if let (Some(list), Some(id)) = (deploys["deploys"].as_array_mut(), subdomain_id) {
        list.retain(|deploy| deploy["subdomainId"] == id);
    }
    deploys
}

/// Returns the days of an answer: `23 Oct – 22 Nov`.
pub(super) fn days_in_words(answer: &Value, wall: Wall) -> Option<String> {
    let day = |name: &str, earlier: i64| {
        let at = parse(answer[name].as_str()?)? - chrono::TimeDelta::seconds(earlier);
        Some(wall.day(at.with_timezone(&wall.zone).date_naive()))
    };
    let (from, to) = (day("from", 0)?, day("to", 1)?);
    Some(if from == to { from } else { format!("{from} – {to}") })
}

fn has_no_events(overview: &Value) -> bool {
    let figures = overview["figures"].as_array().into_iter().flatten();
    figures
        .flat_map(|figure| [&figure["total"], &figure["previous"]])
        .all(|value| value.as_f64().unwrap_or_default() == 0.0)
}
