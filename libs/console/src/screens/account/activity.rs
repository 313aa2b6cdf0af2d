//! The log of changes.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use super::activity_view::rows;
use crate::api_client::Call;
use crate::api_client::operations::ACTIVITY_LIST;
use crate::page::{Page, Section};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Filters of the list, which the page passes on.
const FILTERS: [&str; 6] = ["actorType", "operation", "resourceId", "from", "to", "cursor"];
/// Filters of the file.
const FILE_FILTERS: [&str; 2] = ["from", "to"];
/// Authors with their labels.
const ACTORS: [(&str, &str); 5] = [
    ("", "Anyone"),
    ("person", "People"),
    ("key", "Keys"),
    ("automation", "Automations"),
    ("operator", "The operator of this service"),
];

/// Shows the changes, the newest first.
pub(crate) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    let call = FILTERS
        .iter()
        .fold(Call::of(&ACTIVITY_LIST), |call, filter| call.optional_query(filter, query.get(filter)));
    let (account, list) = join!(console.account(&viewer), console.call(&viewer, call));
    let shown = list.as_ref().ok().map(|list| rows(list, &console.document)).unwrap_or_default();
    let file = FILE_FILTERS
        .iter()
        .fold(UrlQuery::default(), |file, filter| file.with(filter, query.get(filter)))
        .to_link();
    let resource = shown.iter().find_map(|row| row.resource_name.clone());
    Page::new(Section::Account, "account/activity.html")
        .main("list", &list)
        .with("rows", shown)
        .with("actors", ACTORS)
        .with("actor", query.get("actorType"))
        .with("operation", query.get("operation"))
        .with("resource_id", query.get("resourceId"))
        .with("resource", resource)
        .with("from", query.get("from"))
        .with("to", query.get("to"))
        .with("is_filtered", FILTERS.iter().any(|filter| *filter != "cursor" && query.get(filter).is_some()))
        .with("file", format!("/api/activity/export{file}"))
        .respond(&console, &viewer, &account)
}
