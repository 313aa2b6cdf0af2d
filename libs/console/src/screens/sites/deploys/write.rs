//! Publishes deploys, makes previews of them, rolls them back and deletes them.

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::show::{process_body, respond};
use crate::api_client::operations::{
    DEPLOYS_DELETE, DEPLOYS_PROCESS, DEPLOYS_PUBLISH, DEPLOYS_READ, DEPLOYS_ROLLBACK,
};
use crate::api_client::{Answer, Call};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, redirect};
use crate::screens::sites::site::{path, path_of};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::viewer::Viewer;

/// Publishes an upload or a preview. The answer to the post shows what was left out, which is not stored.
pub(crate) async fn publish(
    State(console): State<Console>,
    viewer: Viewer,
    parameters: PathParameters,
    form: AccountForm,
) -> Response {
    process(&console, &viewer, &parameters, &form, true).await
}

/// Makes a preview of an upload.
pub(crate) async fn preview(
    State(console): State<Console>,
    viewer: Viewer,
    parameters: PathParameters,
    form: AccountForm,
) -> Response {
    process(&console, &viewer, &parameters, &form, false).await
}

async fn process(
    console: &Console,
    viewer: &Viewer,
    parameters: &PathParameters,
    form: &FormSubmission,
    publishes: bool,
) -> Response {
    let (site_id, id) = (parameters.get("id"), parameters.get("deploy"));
    let done = match console.call(viewer, Call::of(&DEPLOYS_READ).path("id", id)).await {
        Ok(deploy) if publishes && deploy["status"] == "preview" => {
            let call = Call::of(&DEPLOYS_PUBLISH).path("id", id);
            console.call(viewer, call.idempotency_key(form.idempotency_key())).await
        }
        Ok(_) => {
            let mut body = process_body(site_id, form);
            body.insert("publish".to_owned(), json!(publishes));
            let call = Call::of(&DEPLOYS_PROCESS).path("id", id).body(Value::Object(body));
            console.call(viewer, call.idempotency_key(form.idempotency_key())).await
        }
        Err(refusal) => Err(refusal),
    };
    let add = |page: Page| match done {
        Ok(result) => page.with("result", result),
        Err(refusal) => page.problem(&refusal).keep(form),
    };
    respond(console, viewer, (site_id, id), add).await
}

/// Rolls the live deploy back.
pub(crate) async fn roll_back(
    State(console): State<Console>,
    viewer: Viewer,
    parameters: PathParameters,
    form: AccountForm,
) -> Response {
    let ids = (parameters.get("id"), parameters.get("deploy"));
    let call = Call::of(&DEPLOYS_ROLLBACK).path("id", ids.1).idempotency_key(form.idempotency_key());
    let answer = console.call(&viewer, call).await;
    after(&console, &viewer, ids, answer, (&path_of(ids.0, "deploys", ids.1), Flash::RolledBack)).await
}

/// Deletes an upload or a preview.
pub(crate) async fn delete(
    State(console): State<Console>,
    viewer: Viewer,
    parameters: PathParameters,
    _: AccountForm,
) -> Response {
    let ids = (parameters.get("id"), parameters.get("deploy"));
    let answer = console.call(&viewer, Call::of(&DEPLOYS_DELETE).path("id", ids.1)).await;
    after(&console, &viewer, ids, answer, (&path(ids.0), Flash::Deleted)).await
}

async fn after(
    console: &Console,
    viewer: &Viewer,
    ids: (&str, &str),
    answer: Answer,
    (next, flash): (&str, Flash),
) -> Response {
    match answer {
        Ok(_) => redirect(console, next, Some(flash)),
        Err(refusal) => respond(console, viewer, ids, |page| page.problem(&refusal)).await,
    }
}
