//! Asks for everything that the overview shows.

use axum::extract::State;
use axum::response::Response;
use futures::future::join_all;
use futures::join;
use serde::Serialize;
use serde_json::{Value, json};

use super::needs::needs;
use crate::api_client::operations::{
    ANALYTICS_LIST, ANALYTICS_QUERY, FORMS_LIST, STATUS_READ, SUBMISSIONS_LIST, WEBHOOKS_LIST,
};
use crate::api_client::{Answer, Call, Refusal};
use crate::charts::sparkline;
use crate::page::{Page, Section};
use crate::screens::submissions::SubmissionView;
use crate::screens::usage::usage;
use crate::state::Console;
use crate::viewer::Viewer;

/// Sites and forms that the overview asks for, the newest first.
const NEWEST: &str = "5";
/// Submissions in the list.
const SUBMISSIONS_MAX: usize = 6;

/// Visitors of a site.
#[derive(Serialize)]
struct SiteToday {
    id: Value,
    name: Value,
    visitors: f64,
    sparkline: String,
    refusal: Option<Refusal>,
}

/// Shows the overview.
pub(crate) async fn show(State(console): State<Console>, viewer: Viewer) -> Response {
    let newest = |operation| Call::of(operation).query("sort", "newest").query("limit", NEWEST);
    let (account, status, webhooks, (sites, today), (forms, submissions)) = join!(
        console.account(&viewer),
        console.call(&viewer, Call::of(&STATUS_READ)),
        console.call(&viewer, Call::of(&WEBHOOKS_LIST).query("limit", "100")),
        async {
            let sites = console.call(&viewer, newest(&ANALYTICS_LIST)).await;
            let today = join_all(items(&sites, "sites").map(|site| today(&console, &viewer, site))).await;
            (sites, today)
        },
        async {
            let forms = console.call(&viewer, newest(&FORMS_LIST)).await;
            let lists =
                join_all(items(&forms, "forms").map(|form| newest_submissions(&console, &viewer, form)))
                    .await;
            (forms, lists.into_iter().flatten().collect::<Vec<_>>())
        },
    );
    let status_value = status.as_ref().unwrap_or(&Value::Null);
    let usage = usage(status_value);
    let needs = needs(status_value, webhooks.as_ref().unwrap_or(&Value::Null), &usage);
    Page::new(Section::Overview, "overview.html")
        .panel("status", &status)
        .panel("sites", &sites)
        .panel("forms", &forms)
        .with("needs", needs)
        .with("usage", usage)
        .with("begin", begin(status_value, &console.assets.base))
        .with("today", today)
        .with("newest", sorted(submissions))
        .respond(&console, &viewer, &account)
}

fn items<'a>(answer: &'a Answer, noun: &str) -> impl Iterator<Item = &'a Value> {
    answer.as_ref().ok().and_then(|answer| answer[noun].as_array()).into_iter().flatten()
}

async fn today(console: &Console, viewer: &Viewer, site: &Value) -> SiteToday {
    let call = Call::of(&ANALYTICS_QUERY)
        .query("siteId", site["id"].as_str().unwrap_or_default())
        .query("metric", "unique_visitors")
        .query("period", "7d")
        .query("groupBy", "day");
    let answer = console.call(viewer, call).await;
    let series: Vec<f64> =
        items_of_series(&answer).map(|point| point["value"].as_f64().unwrap_or_default()).collect();
    SiteToday {
        id: site["id"].clone(),
        name: site["name"].clone(),
        visitors: series.last().copied().unwrap_or_default(),
        sparkline: sparkline(&series),
        refusal: answer.err(),
    }
}

fn items_of_series(answer: &Answer) -> impl Iterator<Item = &Value> {
    items(answer, "series")
}

/// Returns the newest submissions of a form, with its name.
async fn newest_submissions(
    console: &Console,
    viewer: &Viewer,
    form: &Value,
) -> Vec<(SubmissionView, Value)> {
    let id = form["id"].as_str().unwrap_or_default();
    let call = Call::of(&SUBMISSIONS_LIST).path("id", id).query("limit", "5");
    let answer = console.call(viewer, call).await;
    let views =
        items(&answer, "submissions").map(|one| (SubmissionView::new(form, one), form["name"].clone()));
    views.collect()
}

/// Returns the newest submissions of all forms.
fn sorted(mut submissions: Vec<(SubmissionView, Value)>) -> Vec<Value> {
    submissions.sort_by(|(a, _), (b, _)| b.created_at.cmp(&a.created_at));
    let with_form = |(view, form): (SubmissionView, Value)| {
        let mut value = json!(view);
        value["form"] = form;
        value
    };
    submissions.into_iter().take(SUBMISSIONS_MAX).map(with_form).collect()
}

/// Returns the ways to begin while the account lacks one of them; they are done when something of theirs exists.
fn begin(status: &Value, base: &str) -> Vec<Value> {
    let steps = [
        (
            "pages",
            "Publish a page",
            format!(
                "curl {base}/api/pages -H \"Authorization: Bearer $KEY\" -H \"Content-Type: application/json\" \\\n  \
                 -d '{{\"slug\": \"index\", \"title\": \"Hello\", \"html\": \"<h1>Hello</h1>\"}}'"
            ),
        ),
        (
            "forms",
            "Make a form",
            format!("curl -X POST {base}/api/workflows/contact -H \"Authorization: Bearer $KEY\""),
        ),
        (
            "analyticsSites",
            "Count visits",
            format!(
                "curl {base}/api/analytics/sites -H \"Authorization: Bearer $KEY\" -H \"Content-Type: application/json\" \
                 \\\n  -d '{{\"name\": \"My site\"}}'"
            ),
        ),
    ];
    let step = |(noun, text, call): (&str, &str, String)| json!({ "text": text, "call": call, "done": status[noun]["total"].as_i64().unwrap_or_default() > 0 });
    let steps = steps.map(step);
    let is_needed = status.is_object() && steps.iter().any(|step| step["done"] == false);
    if is_needed { steps.to_vec() } else { Vec::new() }
}
