//! The list of folders, and the form for a new one.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use super::show::folder_path;
use crate::api_client::Call;
use crate::api_client::operations::{FOLDERS_CREATE, FOLDERS_LIST};
use crate::flash::Flash;
use crate::page::{Page, Section, redirect};
use crate::screens::AccountForm;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the newest folders.
pub(super) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    respond(&console, &viewer, &query, |page| page).await
}

/// Makes a folder, and leads to it.
pub(super) async fn create(State(console): State<Console>, viewer: Viewer, form: AccountForm) -> Response {
    let body = form.to_json(&console.document, &FOLDERS_CREATE);
    let call = Call::of(&FOLDERS_CREATE).body(body).idempotency_key(form.idempotency_key());
    match console.call(&viewer, call).await {
        Ok(made) => {
            let path = folder_path(made["id"].as_str().unwrap_or_default());
            redirect(&console, &path, Some(Flash::FolderMade))
        }
        Err(refusal) => {
            respond(&console, &viewer, &UrlQuery::default(), |page| page.problem(&refusal).keep(&form)).await
        }
    }
}

async fn respond(
    console: &Console,
    viewer: &Viewer,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let call = Call::of(&FOLDERS_LIST).query("sort", "newest").optional_query("cursor", query.get("cursor"));
    let (account, list) = join!(console.account(viewer), console.call(viewer, call));
    let page = Page::new(Section::Other, "folders/list.html").main("list", &list);
    add(page).respond(console, viewer, &account)
}
