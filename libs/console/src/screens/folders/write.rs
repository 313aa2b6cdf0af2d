//! Renames and deletes folders, and moves resources into and out of them.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::show::{folder_path, respond};
use crate::api_client::operations::{
    FOLDERS_DELETE, FOLDERS_ORGANIZE, FOLDERS_UNGROUP, FOLDERS_UPDATE, Operation,
};
use crate::api_client::{Call, Refusal};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::viewer::Viewer;

/// Changes the name and the description.
pub(super) async fn update(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let id = path.get("id");
    // Without a name the API would keep the old one; it refuses an empty one.
    let name = form.get("name").unwrap_or_default();
    let body = json!({ "name": name, "description": form.get("description") });
    match console.call(&viewer, Call::of(&FOLDERS_UPDATE).path("id", id).body(body)).await {
        Ok(_) => redirect(&console, &folder_path(id), Some(Flash::FolderSaved)),
        Err(refusal) => respond(&console, &viewer, id, |page| page.problem(&refusal).keep(&form)).await,
    }
}

/// Deletes a folder. Its resources stay.
pub(super) async fn delete(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    let id = path.get("id");
    match console.call(&viewer, Call::of(&FOLDERS_DELETE).path("id", id)).await {
        Ok(_) => redirect(&console, "/console/folders", Some(Flash::FolderDeleted)),
        Err(refusal) => respond(&console, &viewer, id, with_move_problem(refusal)).await,
    }
}

/// Adds the chosen resources.
pub(super) async fn organize(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    move_chosen(&console, &viewer, path.get("id"), &form, (&FOLDERS_ORGANIZE, Flash::AddedToFolder)).await
}

/// Removes the chosen resources from the folder.
pub(super) async fn ungroup(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    move_chosen(&console, &viewer, path.get("id"), &form, (&FOLDERS_UNGROUP, Flash::RemovedFromFolder)).await
}

async fn move_chosen(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    form: &FormSubmission,
    (operation, flash): (&'static Operation, Flash),
) -> Response {
    let chosen: Vec<Value> = form.all("resource").filter_map(resource_of).collect();
    if chosen.is_empty() {
        let refusal = Refusal::at(StatusCode::BAD_REQUEST, "resources", "Choose what to move.");
        return respond(console, viewer, id, with_move_problem(refusal)).await;
    }
    let call = Call::of(operation).path("id", id).body(json!({ "resources": chosen }));
    match console.call(viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(moved) if moved["failed"].as_u64().unwrap_or_default() == 0 => {
            redirect(console, &folder_path(id), Some(flash))
        }
        Ok(moved) => respond(console, viewer, id, with_move_problem(not_all(&moved))).await,
        Err(refusal) => respond(console, viewer, id, with_move_problem(refusal)).await,
    }
}

/// Reads the value of a checkbox: `page:ID`.
fn resource_of(text: &str) -> Option<Value> {
    let (kind, id) = text.split_once(':')?;
    Some(json!({ "type": kind, "id": id }))
}

/// The refusal of a move of which some parts failed.
fn not_all(moved: &Value) -> Refusal {
    let results = moved["results"].as_array().into_iter().flatten();
    let reasons: Vec<_> = results.filter_map(|result| result["error"].as_str()).collect();
    let detail = format!("{} moved. Not moved: {}.", moved["moved"], reasons.join("; "));
    Refusal::new(StatusCode::CONFLICT, "conflict", "Not everything was moved", &detail)
}

fn with_move_problem(refusal: Refusal) -> impl FnOnce(Page) -> Page {
    |page| page.status(refusal.status()).with("move_problem", refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_that_failed_in_part_says_why() {
        let moved = json!({ "moved": 1, "failed": 1, "results": [{ "status": "moved" },
            { "status": "error", "error": "the resource is not in this folder" }] });
        assert_eq!(not_all(&moved).detail, "1 moved. Not moved: the resource is not in this folder.");
        assert_eq!(resource_of("page:1"), Some(json!({ "type": "page", "id": "1" })));
        assert_eq!(resource_of("page"), None);
    }
}
