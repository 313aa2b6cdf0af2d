//! Asks for cohorts, and shows them.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::{Value, json};

use super::matrix::{Matrix, matrix};
use crate::api_client::Call;
use crate::api_client::operations::{ANALYTICS_READ, ANALYTICS_RETENTION};
use crate::formatting::numbers;
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::screens::analytics::period::{CHOICES, Period};
use crate::screens::analytics::site_page::{root, site_wall};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Lengths of the periods: value, label, and the noun of one.
const GRANULARITIES: [(&str, &str, &str); 3] =
    [("day", "Days", "day"), ("week", "Weeks", "week"), ("month", "Months", "month")];

/// Shows the cohorts of a site.
pub(in crate::screens::analytics) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let (site_id, period) = (path.get("id"), Period::of(&query));
    let granularity = query.get("granularity").unwrap_or("week");
    let mut body = period.add_to_body(json!({ "siteId": site_id, "granularity": granularity }));
    for name in ["firstEvent", "returnEvent"] {
        if let Some(event) = query.get(name) {
            body[name] = json!(event);
        }
    }
    let (account, site, answer) = join!(
        console.account(&viewer),
        console.call(&viewer, Call::of(&ANALYTICS_READ).path("id", site_id)),
        console.call(&viewer, Call::of(&ANALYTICS_RETENTION).query_body(body)),
    );
    let wall = site_wall(&console, &site);
    let found = answer.as_ref().ok();
    let matrix = found.map(|answer| matrix(answer, granularity, wall));
    let words = found.zip(matrix.as_ref());
    let words = words.and_then(|(answer, matrix)| in_words(answer, matrix, granularity));
    let refusal = answer.as_ref().err();
    let problem = refusal.filter(|refusal| !refusal.field_errors.is_empty());
    let mut page = Page::new(Section::Analytics, "analytics/retention.html").main("site", &site);
    if let Some(refusal) = refusal.filter(|_| site.is_ok()) {
        page = page.status(refusal.status());
    }
    if problem.is_none() {
        page = page.panel("retention", &answer);
    }
    page.with("root", root(site_id))
        .with("problem", problem)
        .with("period", &period)
        .with("periods", CHOICES)
        .with("granularity", granularity)
        .with("granularities", GRANULARITIES)
        .with("first_event", query.get("firstEvent"))
        .with("return_event", query.get("returnEvent"))
        .with("lifetime", found.and_then(|answer| answer["visitorIdLifetime"].as_str()))
        .with("hint", found.and_then(|answer| answer["hint"].as_str()))
        .with("words", words)
        .with("matrix", matrix)
        .respond(&console, &viewer, &account)
}

/// Returns the result as a sentence: `Of 1,204 visitors, 12 % returned in the next week.`
fn in_words(answer: &Value, matrix: &Matrix, granularity: &str) -> Option<String> {
    let returned = answer["averageRetention"][1].as_f64()?;
    (matrix.total > 0.0).then(|| {
        let (total, returned) = (numbers::count(matrix.total), numbers::percent(returned));
        format!("Of {total} visitors, {returned} returned in the next {granularity}, as far as is known.")
    })
}
