//! Asks for everything that the view of a site shows.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono_tz::Tz;
use futures::future::{OptionFuture, join_all};
use futures::join;
use http::header;
use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use super::chart::ChartInput;
use super::figures::{Figure, METRICS, Metric, change_in_words};
use super::filters::{self, Filter};
use super::panels::PANELS;
use super::period::{CHOICES, Period};
use crate::api_client::Call;
use crate::api_client::operations::{ANALYTICS_QUERY, ANALYTICS_READ, ANALYTICS_REALTIME, DEPLOYS_LIST};
use crate::formatting::times::{Wall, parse};
use crate::page::{Page, Section, answer_part, redirect};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::{PATH_SEGMENT, UrlQuery};
use crate::viewer::Viewer;

/// What every query of a view has in common.
struct View<'a> {
    site_id: &'a str,
    filters: Vec<Filter>,
}

impl View<'_> {
    fn query(&self, metric: &str, period: &Period) -> Call {
        let call = Call::of(&ANALYTICS_QUERY).query("siteId", self.site_id).query("metric", metric);
        filters::add_to(period.add_to(call), &self.filters)
    }
}

/// Shows a site.
pub(crate) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let (period, metric) = (Period::of(&query), Metric::of(query.get("metric")));
    let is_compared = query.get("compare") != Some("off");
    let view = View { site_id: path.get("id"), filters: filters::of(&query) };
    let figures = METRICS.iter().map(|one| {
        let call = view.query(one.id, &period).query("compare", if is_compared { "true" } else { "false" });
        let interval = (one.id == metric.id).then_some(period.interval());
        console.call(&viewer, call.optional_query("groupBy", interval))
    });
    let panels = PANELS.iter().map(|panel| {
        let call = view.query(METRICS[0].id, &period).query("limit", panel.limit(&query));
        console.call(&viewer, call.query("breakdownBy", panel.dimension(&query)))
    });
    let (account, site, active, deploys, figures, panels) = join!(
        console.account(&viewer),
        console.call(&viewer, Call::of(&ANALYTICS_READ).path("id", view.site_id)),
        console.call(&viewer, Call::of(&ANALYTICS_REALTIME).query("siteId", view.site_id)),
        console.call(&viewer, Call::of(&DEPLOYS_LIST).query("limit", "100")),
        join_all(figures),
        join_all(panels),
    );
    let at = METRICS.iter().position(|one| one.id == metric.id).unwrap_or_default();
    let chosen = figures[at].as_ref().ok();
    let zone = chosen.and_then(|answer| answer["timezone"].as_str()?.parse().ok()).unwrap_or(Tz::UTC);
    let before = chosen.and_then(|answer| period_before(answer, zone));
    let previous = before.map(|period_before| {
        console.call(&viewer, view.query(metric.id, &period_before).query("groupBy", period.interval()))
    });
    let previous = OptionFuture::from(previous).await.and_then(Result::ok);
    let wall = Wall { now: console.clock.now(), zone };
    let site_id = site.as_ref().ok().and_then(|site| site["subdomainId"].as_str());
    let deploys = deploys.ok().map(|deploys| deploys_of(deploys, site_id));
    let chart = chosen.map(|answer| {
        let (previous, deploys) = (previous.as_ref(), deploys.as_ref());
        let input = ChartInput {
            metric,
            answer,
            previous,
            deploys,
            interval: period.interval(),
            query: &query,
            wall,
        };
        input.view()
    });
    let days = chosen.and_then(|answer| days_in_words(answer, wall));
    let figure_views: Vec<_> =
        METRICS.iter().zip(&figures).map(|(one, answer)| Figure::new(one, answer)).collect();
    let panel_views: Vec<_> =
        PANELS.iter().zip(&panels).map(|(kind, answer)| kind.panel(&query, answer)).collect();
    let is_empty =
        figures.iter().all(|answer| answer.as_ref().is_ok_and(has_no_events)) && view.filters.is_empty();
    Page::new(Section::Analytics, "analytics.html")
        .main("site", &site)
        .panel("active", &active)
        .panel("chosen", &figures[at])
        .with("figures", figure_views)
        .with("panels", panel_views)
        .with("chart", chart)
        .with("metric", metric.id)
        .with("metric_label", metric.label)
        .with("words", chosen.filter(|_| is_compared).and_then(|answer| change_in_words(metric, answer)))
        .with("period", &period)
        .with("periods", CHOICES)
        .with("is_compared", is_compared)
        .with("filters", &view.filters)
        .with("dimensions", filters::DIMENSIONS)
        .with("days", days)
        .with("site_zone", zone.name())
        .with("dropped", site.as_ref().ok().map(dropped_in_words))
        .with("is_empty", is_empty)
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
        Err(refusal) => (refusal.status(), refusal.title).into_response(),
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

/// Returns the period with which an answer was compared.
fn period_before(answer: &Value, zone: Tz) -> Option<Period> {
    let comparison = &answer["comparison"];
    let day = |name: &str, earlier: i64| {
        let at = parse(comparison[name].as_str()?)? - chrono::TimeDelta::seconds(earlier);
        Some(at.with_timezone(&zone).date_naive().to_string())
    };
    // The end is that of the last day.
    Some(Period::custom(day("from", 0)?, day("to", 1)?))
}

/// Returns the deploys of a site, or all if it is not bound to one.
fn deploys_of(mut deploys: Value, subdomain_id: Option<&str>) -> Value {
    if let (Some(list), Some(id)) = (deploys["deploys"].as_array_mut(), subdomain_id) {
        list.retain(|deploy| deploy["subdomainId"] == id);
    }
    deploys
}

/// Returns why events of a site were not counted, with their numbers.
fn dropped_in_words(site: &Value) -> Vec<(String, u64)> {
    let reasons = site["dropped"].as_object().into_iter().flatten();
    let counted = reasons.filter_map(|(reason, count)| Some((reason.replace('_', " "), count.as_u64()?)));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// Returns the days of an answer: `23 Oct – 22 Nov`.
fn days_in_words(answer: &Value, wall: Wall) -> Option<String> {
    let day = |name: &str, earlier: i64| {
        let at = parse(answer[name].as_str()?)? - chrono::TimeDelta::seconds(earlier);
        Some(wall.day(at.with_timezone(&wall.zone).date_naive()))
    };
    let (from, to) = (day("from", 0)?, day("to", 1)?);
    Some(if from == to { from } else { format!("{from} – {to}") })
}

fn has_no_events(answer: &Value) -> bool {
    answer["total"].as_f64().unwrap_or_default() == 0.0
        && answer["comparison"]["total"].as_f64().unwrap_or_default() == 0.0
}
