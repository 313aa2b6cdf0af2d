//! A run: its timeline, and what can be done with it.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};

use super::json_view::JsonView;
use super::page_path::page_path;
use super::run_view::{timeline, with_state};
use super::show;
use crate::api_client::operations::{AUTOMATIONS_CANCEL, AUTOMATIONS_REPLAY, AUTOMATIONS_RUN};
use crate::api_client::{Call, Refusal};
use crate::flash::Flash;
use crate::page::{Page, Section, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::{PATH_SEGMENT, UrlQuery};
use crate::viewer::Viewer;

/// Steps of a page.
const PAGE_STEPS: usize = 100;

/// Shows a run.
pub(super) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    respond(&console, &viewer, &path, &query, |page| page).await
}

async fn respond(
    console: &Console,
    viewer: &Viewer,
    path: &PathParameters,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let call = Call::of(&AUTOMATIONS_RUN).path("id", path.get("id")).path("runId", path.get("run"));
    let (account, automation, run) = join!(
        console.account(viewer),
        show::read(console, viewer, path.get("id")),
        console.call(viewer, call)
    );
    let top_level = automation.as_ref().map(|automation| ids_of(&automation["steps"])).unwrap_or_default();
    let run = run.map(with_state);
    let mut steps =
        run.as_ref().map(|run| timeline(run, &top_level, console.clock.now())).unwrap_or_default();
    let count = steps.len();
    let pages = count.div_ceil(PAGE_STEPS).max(1);
    let page_number = query.get("steps").and_then(|page| page.parse().ok()).unwrap_or(1).clamp(1, pages);
    steps = steps.into_iter().skip((page_number - 1) * PAGE_STEPS).take(PAGE_STEPS).collect();
    let trigger = run.as_ref().ok().and_then(|run| JsonView::new(&run["trigger"]));
    let page = Page::new(Section::Automations, "automations/run.html")
        .panel("automation", &automation)
        .main("run", &run.map(without_steps))
        .with("steps", steps)
        .with("step_count", count)
        .with("page_number", page_number)
        .with("pages", pages)
        .with("trigger", trigger);
    add(page).respond(console, viewer, &account)
}

/// Starts a new run with the trigger of this one: from the beginning, or from a step on.
pub(super) async fn run_again(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let body = form.get("fromStep").map_or(json!({}), |step| json!({ "fromStep": step }));
    let call =
        Call::of(&AUTOMATIONS_REPLAY).path("id", path.get("id")).path("runId", path.get("run")).body(body);
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(started) => {
            let run =
                utf8_percent_encode(started["runId"].as_str().unwrap_or_default(), PATH_SEGMENT).to_string();
            redirect(&console, &format!("{}/runs/{run}", page_path(path.get("id"))), Some(Flash::RunStarted))
        }
        Err(refusal) => refused(&console, &viewer, &path, refusal).await,
    }
}

/// Cancels a run that has not ended.
pub(super) async fn cancel(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let call = Call::of(&AUTOMATIONS_CANCEL).path("id", path.get("id")).path("runId", path.get("run"));
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(_) => {
            let run = utf8_percent_encode(path.get("run"), PATH_SEGMENT).to_string();
            redirect(
                &console,
                &format!("{}/runs/{run}", page_path(path.get("id"))),
                Some(Flash::RunCancelled),
            )
        }
        Err(refusal) => refused(&console, &viewer, &path, refusal).await,
    }
}

async fn refused(console: &Console, viewer: &Viewer, path: &PathParameters, refusal: Refusal) -> Response {
    let with_problem = |page: Page| page.problem(&refusal);
    respond(console, viewer, path, &UrlQuery::default(), with_problem).await
}

/// Returns the ids of the steps outside branches and loops.
fn ids_of(steps: &Value) -> Vec<&str> {
    steps.as_array().into_iter().flatten().filter_map(|step| step["id"].as_str()).collect()
}

/// Returns a run without its steps, which the timeline has: they may be megabytes.
fn without_steps(mut run: Value) -> Value {
    if let Value::Object(members) = &mut run {
        members.remove("steps");
        members.remove("trigger");
    }
    run
}
