//! The custom domains of a site, and the form for a new one.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::Value;

use super::steps::with_steps;
use crate::api_client::Call;
use crate::api_client::operations::{DOMAINS_LIST, SUBDOMAINS_LIST};
use crate::page::Page;
use crate::screens::PathParameters;
use crate::screens::sites::site::{self, items};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the domains, and asks before one is removed.
pub(crate) async fn list(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    respond(&console, &viewer, path.get("id"), &query, |page| page).await
}

/// Shows the domains with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    site_id: &str,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let call = Call::of(&DOMAINS_LIST).query("sort", "newest").query("limit", "100");
    let (account, site, list, sites) = join!(
        console.account(viewer),
        site::find(console, viewer, site_id),
        console.call(viewer, call.optional_query("cursor", query.get("cursor"))),
        console.call(viewer, Call::of(&SUBDOMAINS_LIST).query("limit", "100")),
    );
    let all: Vec<Value> = list.iter().flat_map(|list| items(list, "domains")).cloned().collect();
    let domains: Vec<Value> =
        all.iter().filter(|domain| domain["subdomainId"] == site_id).cloned().map(with_steps).collect();
    let asked = query.get("remove").and_then(|id| domains.iter().find(|domain| domain["id"] == id));
    let page = site::page("sites/domains.html", "domains", &site)
        .panel("list", &list)
        .with("all", &all)
        .with("sites", sites.map(|sites| sites["subdomains"].clone()).unwrap_or_default())
        .with("confirm", asked)
        .with("domains", &domains);
    add(page).respond(console, viewer, &account)
}
