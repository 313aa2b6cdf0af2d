//! The deploys of a site, the uploads that are not published yet, and the form for a zip.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::Value;

use crate::api_client::Call;
use crate::api_client::operations::DEPLOYS_LIST;
use crate::page::Page;
use crate::screens::PathParameters;
use crate::screens::sites::site::{self, items, tag};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the newest deploys.
pub(crate) async fn list(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    respond(&console, &viewer, path.get("id"), &query, |page| page).await
}

/// Shows the newest deploys with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    site_id: &str,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let own = Call::of(&DEPLOYS_LIST).query("subdomainId", site_id).query("limit", "25");
    let (account, site, list, newest) = join!(
        console.account(viewer),
        site::find(console, viewer, site_id),
        console.call(viewer, own.optional_query("cursor", query.get("cursor"))),
        // What was not processed has no site yet.
        console.call(viewer, Call::of(&DEPLOYS_LIST).query("limit", "100")),
    );
    let with_states = |list: &Value, is_shown: fn(&Value) -> bool| {
        let shown = items(list, "deploys").filter(|deploy| is_shown(deploy));
        shown.cloned().map(with_state).collect::<Vec<_>>()
    };
    let waits = |deploy: &Value| deploy["status"] == "uploaded" || deploy["status"] == "processing";
    let page = site::page("sites/deploys.html", "deploys", &site)
        .with("deploys", list.as_ref().map(|list| with_states(list, |_| true)).unwrap_or_default())
        .with("waiting", newest.as_ref().map(|list| with_states(list, waits)).unwrap_or_default())
        .panel("list", &list);
    add(page).respond(console, viewer, &account)
}

/// Adds to a deploy what its tag says.
pub(super) fn with_state(mut deploy: Value) -> Value {
    let state = match deploy["status"].as_str().unwrap_or_default() {
        _ if deploy["isLive"] == true => ("good", "done", "Live"),
        "preview" => ("warn", "retry", "Preview"),
        "uploaded" => ("warn", "retry", "Not published"),
        "processing" => ("warn", "retry", "Being processed"),
        "presigned" => ("", "retry", "Waits for its zip"),
        "rolled_back" => ("", "back", "Rolled back"),
        "expired" => ("", "close", "Expired"),
        _ => ("", "archive", "Replaced"),
    };
    deploy["state"] = tag(state);
    deploy
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_live_is_said_first() {
        let state = |status: &str, live: bool| {
            with_state(json!({ "status": status, "isLive": live }))["state"]["text"].clone()
        };
        assert_eq!(state("processed", true), "Live");
        assert_eq!(state("processed", false), "Replaced");
        assert_eq!(state("uploaded", false), "Not published");
        assert_eq!(state("rolled_back", false), "Rolled back");
    }
}
