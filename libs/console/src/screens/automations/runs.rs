//! The runs of an automation.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use super::run_view::with_states;
use super::show;
use crate::api_client::Call;
use crate::api_client::operations::AUTOMATIONS_LOGS;
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Runs of a page. The API returns fewer if their steps are large.
const PAGE_RUNS: &str = "25";
/// Filters: the parameter `status` of the page, its label, and the API's `status` and `isRetrying`.
const FILTERS: [(&str, &str, Option<&str>, Option<&str>); 7] = [
    ("", "All", None, None),
    ("failed", "Failed", Some("error"), None),
    ("running", "Running", Some("running"), None),
    ("waiting", "Waiting", Some("waiting"), Some("false")),
    ("retrying", "Retrying", Some("waiting"), Some("true")),
    ("done", "Done", Some("success"), None),
    ("cancelled", "Cancelled", Some("cancelled"), None),
];

/// Shows the newest runs, all or those of a status.
pub(super) async fn list(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let chosen = query.get("status").unwrap_or_default();
    let (status, _, api_status, is_retrying) =
        FILTERS.into_iter().find(|(status, ..)| *status == chosen).unwrap_or(FILTERS[0]);
    let call = Call::of(&AUTOMATIONS_LOGS)
        .path("id", path.get("id"))
        .query("limit", PAGE_RUNS)
        .optional_query("status", api_status)
        .optional_query("isRetrying", is_retrying)
        .optional_query("cursor", query.get("cursor"));
    let (account, automation, runs) = join!(
        console.account(&viewer),
        show::read(&console, &viewer, path.get("id")),
        console.call(&viewer, call)
    );
    Page::new(Section::Automations, "automations/runs.html")
        .main("automation", &automation)
        .panel("runs", &runs.map(with_states))
        .with("status", status)
        .with("statuses", FILTERS.map(|(status, label, ..)| (status, label)))
        .respond(&console, &viewer, &account)
}
