//! Asks for a funnel, and shows it.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde::Serialize;
use serde_json::{Value, json};

use super::drop_off_step::{DROP_OFF, DropOffStep};
use super::steps::StepRows;
use crate::api_client::operations::{ANALYTICS_FUNNEL, ANALYTICS_QUERY, ANALYTICS_READ};
use crate::api_client::{Answer, Call};
use crate::formatting::numbers;
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::screens::analytics::period::{CHOICES, Period};
use crate::screens::analytics::site_page::root;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Pages that are suggested.
const SUGGESTIONS: &str = "20";

/// A step with its result.
#[derive(Debug, Serialize)]
struct StepView {
    label: String,
    count: f64,
    /// In percent of the first step; the width of the bar.
    rate: f64,
    lost: f64,
    /// In percent of the step before.
    lost_rate: f64,
    /// The query of the page that shows where the lost visits went; `None` if none was lost.
    drop_off_link: Option<String>,
}

/// Shows a funnel. Without steps it is one of the pages with the most visitors.
pub(in crate::screens::analytics) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let (site_id, period) = (path.get("id"), Period::of(&query));
    let pages = Call::of(&ANALYTICS_QUERY)
        .query("siteId", site_id)
        .query("metric", "unique_visitors")
        .query("breakdownBy", "url")
        .query("limit", SUGGESTIONS);
    // Pages are suggested even if the chosen days are invalid.
    let pages = pages.query("period", if period.name == "custom" { "30d" } else { &period.name });
    let (account, site, pages) = join!(
        console.account(&viewer),
        console.call(&viewer, Call::of(&ANALYTICS_READ).path("id", site_id)),
        console.call(&viewer, pages),
    );
    let pages = paths(&pages);
    let asked = StepRows::of(&query);
    let is_suggested = asked.is_none();
    let steps = asked.unwrap_or_else(|| StepRows::suggested(&pages));
    let drop_off = DropOffStep::of(&query, &steps);
    let body = period.add_to_body(json!({ "siteId": site_id, "steps": steps.to_json() }));
    let (answer, next) = join!(
        async {
            let is_asked = steps.is_funnel() || !is_suggested;
            let call = is_asked.then(|| Call::of(&ANALYTICS_FUNNEL).query_body(body.clone()))?;
            Some(console.call(&viewer, call).await)
        },
        async { Some(console.call(&viewer, drop_off.as_ref()?.call(body.clone())).await) },
    );
    let answer = answer.map(|answer| answer.map_err(|refusal| steps.with_input_names(refusal)));
    let refusal = answer.as_ref().and_then(|answer| answer.as_ref().err());
    let views = answer.as_ref().and_then(|answer| answer.as_ref().ok()).map(|answer| {
        let link = steps.add_to(&query);
        views(answer, &steps, |number| link.with(DROP_OFF, Some(&number.to_string())).to_link())
    });
    let is_invalid = refusal.is_some_and(|refusal| !refusal.field_errors.is_empty());
    let mut page = Page::new(Section::Analytics, "analytics/funnels.html")
        .main("site", &site)
        .with("root", root(site_id))
        .with("period", &period)
        .with("periods", CHOICES)
        .with("rows", &steps.0)
        .with("pages", &pages)
        .with("is_suggested", is_suggested)
        .with("words", views.as_ref().and_then(|views| in_words(views)))
        .with("steps", views)
        .with("drop_off", &drop_off)
        .with("problem", refusal.filter(|_| is_invalid));
    if let Some(answer) = answer.as_ref().filter(|_| !is_invalid) {
        page = page.panel("funnel", answer);
    }
    if let Some(next) = &next {
        page = page.panel("next", next);
    }
    if let Some(refusal) = refusal.filter(|_| site.is_ok()) {
        page = page.status(refusal.status());
    }
    page.respond(&console, &viewer, &account)
}

/// Returns the paths of a breakdown.
fn paths(answer: &Answer) -> Vec<String> {
    let rows = answer.as_ref().ok().and_then(|answer| answer["breakdown"].as_array());
    let keys = rows.into_iter().flatten().filter_map(|row| row["key"].as_str());
    keys.filter(|key| *key != "(none)").map(str::to_owned).collect()
}

/// `drop_off_link` returns the link to where the visits went that left before the step with this number.
fn views(answer: &Value, rows: &StepRows, drop_off_link: impl Fn(usize) -> String) -> Vec<StepView> {
    let steps = answer["steps"].as_array().into_iter().flatten();
    let mut before = None;
    let view = |(at, (step, label)): (usize, (&Value, String))| {
        let count = step["count"].as_f64().unwrap_or_default();
        let lost = before.replace(count).map_or(0.0, |before: f64| before - count);
        StepView {
            label,
            count,
            rate: step["rate"].as_f64().unwrap_or_default(),
            lost,
            lost_rate: step["dropOff"].as_f64().unwrap_or_default(),
            drop_off_link: (lost > 0.0).then(|| drop_off_link(at + 1)),
        }
    };
    steps.zip(rows.labels()).enumerate().map(view).collect()
}

/// Returns the result as a sentence, with the step that lost the most.
fn in_words(steps: &[StepView]) -> Option<String> {
    let (first, last) = (steps.first()?, steps.last()?);
    if first.count == 0.0 {
        return None;
    }
    let mut words = format!(
        "{} of {} visits went all the way: {}.",
        numbers::count(last.count),
        numbers::count(first.count),
        numbers::percent(last.rate)
    );
    let (at, worst) = steps.iter().enumerate().max_by(|a, b| a.1.lost.total_cmp(&b.1.lost))?;
    if worst.lost > 0.0 {
        words.push_str(&format!(" Most left before step {}: {}.", at + 1, numbers::count(worst.lost)));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_funnel_reads_as_a_sentence() {
        let rows = StepRows::suggested(&["/".to_owned(), "/a".to_owned(), "/b".to_owned()]);
        let answer = json!({ "steps": [
            { "count": 200, "rate": 100.0, "dropOff": 0.0 }, { "count": 80, "rate": 40.0, "dropOff": 60.0 },
            { "count": 60, "rate": 30.0, "dropOff": 25.0 }] });
        let steps = views(&answer, &rows, |number| format!("?dropOff={number}"));
        assert_eq!(steps.iter().map(|step| step.lost).collect::<Vec<_>>(), [0.0, 120.0, 20.0]);
        let links: Vec<_> = steps.iter().map(|step| step.drop_off_link.as_deref()).collect();
        assert_eq!(links, [None, Some("?dropOff=2"), Some("?dropOff=3")]);
        let words = "60 of 200 visits went all the way: 30 %. Most left before step 2: 120.";
        assert_eq!(in_words(&steps).unwrap(), words);
        let none = json!({ "steps": [{ "count": 0, "rate": 0.0, "dropOff": 0.0 }] });
        assert_eq!(in_words(&views(&none, &rows, |_| String::new())), None);
    }
}
