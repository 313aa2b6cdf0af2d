//! Closes, opens and deletes a form.

use axum::extract::State;
use axum::response::Response;
use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};

use super::show::respond;
use crate::api_client::operations::{FORMS_DELETE, FORMS_UPDATE};
use crate::api_client::{Call, Refusal};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, redirect};
use crate::screens::{PathParameters, require_same_account};
use crate::state::Console;
use crate::url_query::PATH_SEGMENT;
use crate::viewer::Viewer;

/// Closes a form at once.
pub(super) async fn close(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: FormSubmission,
) -> Response {
    let now = json!(console.clock.now());
    set_closing_time(&console, &viewer, path.get("id"), &form, (now, Flash::FormClosed)).await
}

/// Opens a form that has closed.
pub(super) async fn open(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: FormSubmission,
) -> Response {
    set_closing_time(&console, &viewer, path.get("id"), &form, (Value::Null, Flash::FormOpened)).await
}

async fn set_closing_time(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    form: &FormSubmission,
    (closes_at, flash): (Value, Flash),
) -> Response {
    if let Err(refused) = require_same_account(console, viewer, form).await {
        return *refused;
    }
    let call = Call::of(&FORMS_UPDATE).path("id", id).body(json!({ "closesAt": closes_at }));
    match console.call(viewer, call).await {
        Ok(_) => redirect(console, &details_path(id), Some(flash)),
        Err(refusal) => respond(console, viewer, id, with_problem(refusal)).await,
    }
}

/// Deletes a form with its submissions. After a refusal for an old sign-in, the page leads to a new one and back.
pub(super) async fn delete(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: FormSubmission,
) -> Response {
    if let Err(refused) = require_same_account(&console, &viewer, &form).await {
        return *refused;
    }
    let id = path.get("id");
    match console.call(&viewer, Call::of(&FORMS_DELETE).path("id", id)).await {
        Ok(_) => redirect(&console, "/console/forms", Some(Flash::FormDeleted)),
        Err(refusal) => {
            let refusal = refusal.leading_back_to(&format!("{}?confirm=delete", details_path(id)));
            let add = with_problem(refusal);
            respond(&console, &viewer, id, |page| add(page).with("asks_to_delete", true)).await
        }
    }
}

fn with_problem(refusal: Refusal) -> impl FnOnce(Page) -> Page {
    |page| page.status(refusal.status()).with("problem", refusal)
}

fn details_path(id: &str) -> String {
    format!("/console/forms/{}/details", utf8_percent_encode(id, PATH_SEGMENT))
}
