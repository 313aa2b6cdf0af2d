//! A folder: what is in it, what can be added, and its settings.

use axum::extract::State;
use axum::response::Response;
use futures::future::join_all;
use futures::join;
use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};

use super::resource_kind::{KINDS, ResourceKind, path_of};
use crate::api_client::Call;
use crate::api_client::operations::{FOLDERS_READ, PAGES_LIST};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::{PATH_SEGMENT, UrlQuery};
use crate::viewer::Viewer;

/// Shows a folder; with `delete`, asks before it is deleted.
pub(super) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let asks = query.get("delete").is_some();
    respond(&console, &viewer, path.get("id"), |page| page.with("asks_to_delete", asks)).await
}

/// Shows a folder with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let newest =
        |kind: &'static ResourceKind| Call::of(kind.list).query("sort", "newest").query("limit", "100");
    let (account, folder, pages, lists) = join!(
        console.account(viewer),
        console.call(viewer, Call::of(&FOLDERS_READ).path("id", id).query("include", "resources")),
        console.call(viewer, Call::of(&PAGES_LIST).query("folderId", id).query("limit", "100")),
        join_all(KINDS.iter().map(|kind| console.call(viewer, newest(kind)))),
    );
    let folder = folder.map(|mut folder| {
        for resource in folder["resources"].as_array_mut().into_iter().flatten() {
            let kind = resource["type"].as_str().and_then(ResourceKind::find);
            resource["kind"] = json!(kind.map(|kind| kind.label));
            resource["path"] = json!(path_of(resource, &pages));
        }
        folder
    });
    let free: Vec<Value> =
        KINDS.iter().zip(&lists).filter_map(|(kind, list)| kind.without_folder(list)).collect();
    let page = Page::new(Section::Other, "folders/folder.html")
        .main("folder", &folder)
        .with("root", folder_path(id))
        .with("free", free);
    add(page).respond(console, viewer, &account)
}

/// Returns the path of a folder.
pub(super) fn folder_path(id: &str) -> String {
    format!("/console/folders/{}", utf8_percent_encode(id, PATH_SEGMENT))
}
