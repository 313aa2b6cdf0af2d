//! Closes, opens and deletes a form.

use axum::extract::State;
use axum::response::Response;
use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};

use super::show::respond;
use crate::api_client::Call;
use crate::api_client::operations::{FORMS_DELETE, FORMS_UPDATE};
use crate::flash::Flash;
use crate::page::redirect;
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::PATH_SEGMENT;
use crate::viewer::Viewer;

/// Closes a form at once.
pub(super) async fn close(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    let now = json!(console.clock.now());
    set_closing_time(&console, &viewer, path.get("id"), (now, Flash::FormClosed)).await
}

/// Opens a form that has closed.
pub(super) async fn open(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    set_closing_time(&console, &viewer, path.get("id"), (Value::Null, Flash::FormOpened)).await
}

async fn set_closing_time(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    (closes_at, flash): (Value, Flash),
) -> Response {
    let call = Call::of(&FORMS_UPDATE).path("id", id).body(json!({ "closesAt": closes_at }));
    match console.call(viewer, call).await {
        Ok(_) => redirect(console, &details_path(id), Some(flash)),
        Err(refusal) => respond(console, viewer, id, |page| page.problem(&refusal)).await,
    }
}

/// Deletes a form with its submissions. After a refusal for an old sign-in, the page leads to a new one and back.
pub(super) async fn delete(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    let id = path.get("id");
    match console.call(&viewer, Call::of(&FORMS_DELETE).path("id", id)).await {
        Ok(_) => redirect(&console, "/console/forms", Some(Flash::FormDeleted)),
        Err(refusal) => {
            let refusal = refusal.leading_back_to(&format!("{}?confirm=delete", details_path(id)));
            respond(&console, &viewer, id, |page| page.problem(&refusal).with("asks_to_delete", true)).await
        }
    }
}

fn details_path(id: &str) -> String {
    format!("/console/forms/{}/details", utf8_percent_encode(id, PATH_SEGMENT))
}
