//! Switches an automation on and off, tests and deletes it.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};

use super::page_path::page_path;
use super::{edit, show};
use crate::api_client::operations::{AUTOMATIONS_DELETE, AUTOMATIONS_TEST, AUTOMATIONS_UPDATE};
use crate::api_client::{Call, Refusal};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::{PATH_SEGMENT, UrlQuery};
use crate::viewer::Viewer;

/// Switches an automation on or off.
pub(super) async fn switch(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let is_on = form.get("enabled") == Some("true");
    let call = Call::of(&AUTOMATIONS_UPDATE).path("id", path.get("id")).body(json!({ "enabled": is_on }));
    match console.call(&viewer, call).await {
        Ok(_) => {
            let flash = if is_on { Flash::AutomationOn } else { Flash::AutomationOff };
            redirect(&console, &page_path(path.get("id")), Some(flash))
        }
        Err(refusal) => refused(&console, &viewer, path.get("id"), &form, refusal).await,
    }
}

/// Runs the real steps with the posted trigger, and leads to the run.
pub(super) async fn test(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let id = path.get("id");
    let data = match form.get("triggerData").map(serde_json::from_str::<Value>) {
        None => json!({}),
        Some(Ok(data)) => data,
        Some(Err(error)) => {
            let refusal =
                Refusal::at(StatusCode::BAD_REQUEST, "triggerData", &format!("This is not JSON: {error}."));
            return refused(&console, &viewer, id, &form, refusal).await;
        }
    };
    let call = Call::of(&AUTOMATIONS_TEST).path("id", id).body(json!({ "triggerData": data }));
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(run) => {
            let run =
                utf8_percent_encode(run["runId"].as_str().unwrap_or_default(), PATH_SEGMENT).to_string();
            redirect(&console, &format!("{}/runs/{run}", page_path(id)), Some(Flash::RunStarted))
        }
        Err(refusal) => refused(&console, &viewer, id, &form, refusal).await,
    }
}

/// Deletes an automation with its runs, and leads to the list.
pub(super) async fn delete(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    match console.call(&viewer, Call::of(&AUTOMATIONS_DELETE).path("id", path.get("id"))).await {
        Ok(_) => redirect(&console, "/console/automations", Some(Flash::AutomationDeleted)),
        Err(refusal) => {
            edit::respond(&console, &viewer, path.get("id"), None, |page| page.problem(&refusal)).await
        }
    }
}

async fn refused(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    form: &FormSubmission,
    refusal: Refusal,
) -> Response {
    let keep = |page: Page| page.problem(&refusal).keep(form);
    show::respond(console, viewer, id, &UrlQuery::default(), keep).await
}
