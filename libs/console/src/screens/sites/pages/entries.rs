//! Adds and deletes entries of a page, and restores those of a deleted one.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::editor::respond;
use crate::api_client::operations::{ENTRIES_CREATE, ENTRIES_DELETE, ENTRIES_RESTORE};
use crate::api_client::{Answer, Call};
use crate::flash::Flash;
use crate::page::redirect;
use crate::screens::sites::site::path_of;
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Adds an entry.
pub(crate) async fn add_entry(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let data: Map<String, Value> = form
        .fields()
        .filter_map(|(name, value)| Some((name.strip_prefix("data.")?.to_owned(), json!(value))))
        .collect();
    let call = Call::of(&ENTRIES_CREATE).path("id", path.get("page")).body(json!({ "data": data }));
    let answer = console.call(&viewer, call.idempotency_key(form.idempotency_key())).await;
    after(&console, &viewer, &path, answer, Flash::EntryAdded).await
}

/// Deletes an entry.
pub(crate) async fn delete_entry(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    let call = Call::of(&ENTRIES_DELETE).path("id", path.get("page")).path("entryId", path.get("entry"));
    let answer = console.call(&viewer, call).await;
    after(&console, &viewer, &path, answer, Flash::Deleted).await
}

/// Restores the entries of a deleted page to this one.
pub(crate) async fn restore_entries(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let body = json!({ "archiveId": form.get("archive").unwrap_or_default() });
    let call = Call::of(&ENTRIES_RESTORE).path("id", path.get("page")).body(body);
    let answer = console.call(&viewer, call.idempotency_key(form.idempotency_key())).await;
    after(&console, &viewer, &path, answer, Flash::EntriesRestored).await
}

async fn after(
    console: &Console,
    viewer: &Viewer,
    path: &PathParameters,
    answer: Answer,
    flash: Flash,
) -> Response {
    let (site_id, id) = (path.get("id"), path.get("page"));
    match answer {
        Ok(_) => redirect(console, &path_of(site_id, "pages", id), Some(flash)),
        Err(refusal) => {
            respond(console, viewer, (site_id, id), &UrlQuery::default(), |page| page.problem(&refusal)).await
        }
    }
}
