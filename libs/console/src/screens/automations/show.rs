//! An automation: what starts it, its steps in words, its figures and its last runs.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::{Value, json};

use super::definition_view::steps_in_words;
use super::list::{list_forms, with_state};
use super::run_view::with_states;
use crate::api_client::operations::{AUTOMATIONS_LOGS, AUTOMATIONS_READ};
use crate::api_client::{Answer, Call};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Runs on the page of the automation.
const LAST_RUNS: &str = "5";

/// Shows an automation.
pub(super) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    respond(&console, &viewer, path.get("id"), &query, |page| page).await
}

/// Shows an automation with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let (account, (automation, steps), runs) = join!(
        console.account(viewer),
        async {
            let (automation, forms) = join!(read(console, viewer, id), list_forms(console, viewer));
            let steps = automation.as_ref().ok().map(|automation| steps_in_words(&automation["steps"]));
            (automation.map(|automation| with_state(automation, &forms)), steps)
        },
        console.call(viewer, Call::of(&AUTOMATIONS_LOGS).path("id", id).query("limit", LAST_RUNS)),
    );
    let example = automation.as_ref().ok().and_then(example_call);
    let page = Page::new(Section::Automations, "automations/show.html")
        .main("automation", &automation)
        .panel("runs", &runs.map(with_states))
        .with("steps", steps)
        .with("example", example)
        .with("is_test_open", query.get("test").is_some());
    add(page).respond(console, viewer, &account)
}

/// Returns an automation.
pub(super) async fn read(console: &Console, viewer: &Viewer, id: &str) -> Answer {
    console.call(viewer, Call::of(&AUTOMATIONS_READ).path("id", id)).await
}

/// Returns a call that starts a run; `None` without an address.
fn example_call(automation: &Value) -> Option<String> {
    let url = automation["triggerUrl"].as_str()?;
    let method = automation["trigger"]["method"].as_str().unwrap_or("POST");
    if method == "GET" {
        return Some(format!("curl '{url}'"));
    }
    Some(format!(
        "curl -X {method} '{url}' -H 'Content-Type: application/json' -d '{}'",
        json!({ "hello": "world" })
    ))
}
