//! Changes a webhook: its settings, its secret, its state; and deletes it.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use web::Uncompressed;

use super::edit;
use super::page_path::page_path;
use crate::api_client::operations::{WEBHOOKS_DELETE, WEBHOOKS_ROTATE_SECRET, WEBHOOKS_UPDATE};
use crate::api_client::{Call, Refusal};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::viewer::Viewer;

/// Saves the settings.
pub(super) async fn save(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let mut body = form.to_json(&console.document, &WEBHOOKS_UPDATE);
    if let Value::Object(members) = &mut body
        && members.remove("hears").is_some_and(|hears| hears == "all")
    {
        members.insert("formIds".to_owned(), Value::Null);
    }
    let id = path.get("id");
    match console.call(&viewer, Call::of(&WEBHOOKS_UPDATE).path("id", id).body(body)).await {
        Ok(_) => redirect(&console, &page_path(id), Some(Flash::WebhookSaved)),
        Err(refusal) => refused(&console, &viewer, id, &form, refusal).await,
    }
}

/// Switches a webhook on or off.
pub(super) async fn switch(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let (id, is_on) = (path.get("id"), form.get("active") == Some("true"));
    let call = Call::of(&WEBHOOKS_UPDATE).path("id", id).body(json!({ "isActive": is_on }));
    match console.call(&viewer, call).await {
        Ok(_) => {
            let flash = if is_on { Flash::WebhookOn } else { Flash::WebhookOff };
            redirect(&console, &page_path(id), Some(flash))
        }
        Err(refusal) => refused(&console, &viewer, id, &form, refusal).await,
    }
}

/// Replaces the secret. The answer to the post shows the new one.
pub(super) async fn rotate_secret(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let id = path.get("id");
    let body = form.to_json(&console.document, &WEBHOOKS_ROTATE_SECRET);
    let call = Call::of(&WEBHOOKS_ROTATE_SECRET).path("id", id).body(body);
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(rotated) => {
            let with_secret = |page: Page| page.with("rotated", rotated);
            let mut response = edit::respond(&console, &viewer, id, with_secret).await;
            response.extensions_mut().insert(Uncompressed);
            response
        }
        Err(refusal) => refused(&console, &viewer, id, &form, refusal).await,
    }
}

/// Deletes a webhook with its deliveries, and leads to the list.
pub(super) async fn delete(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    match console.call(&viewer, Call::of(&WEBHOOKS_DELETE).path("id", path.get("id"))).await {
        Ok(_) => redirect(&console, "/console/webhooks", Some(Flash::WebhookDeleted)),
        Err(refusal) => refused(&console, &viewer, path.get("id"), &form, refusal).await,
    }
}

async fn refused(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    form: &FormSubmission,
    refusal: Refusal,
) -> Response {
    // The other forms of the page consist of a button: they have nothing to keep.
    let kept = form.get("hears").map(|_| form.kept());
    let keep = |page: Page| page.problem(&refusal).with("kept", kept);
    edit::respond(console, viewer, id, keep).await
}
