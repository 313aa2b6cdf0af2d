//! The list of analytics sites. The only one opens at once.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use crate::api_client::Call;
use crate::api_client::operations::ANALYTICS_LIST;
use crate::page::{Page, Section, redirect};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the sites.
pub(crate) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    let call =
        Call::of(&ANALYTICS_LIST).query("sort", "newest").optional_query("cursor", query.get("cursor"));
    let (account, list) = join!(console.account(&viewer), console.call(&viewer, call));
    let sites = list.as_ref().ok().and_then(|list| list["sites"].as_array());
    if let (Some([only]), None) = (sites.map(Vec::as_slice), query.get("cursor"))
        && let Some(id) = only["id"].as_str()
    {
        return redirect(&console, &format!("/console/analytics/{id}"), None);
    }
    Page::new(Section::Analytics, "analytics_sites.html")
        .main("list", &list)
        .respond(&console, &viewer, &account)
}
