//! The posts of the builder: saves a form, or changes its questions and shows it again.

use axum::extract::State;
use axum::response::Response;
use percent_encoding::utf8_percent_encode;
use serde_json::json;

use super::draft::{Change, Draft};
use super::show::{Shown, respond};
use crate::api_client::operations::{FORMS_CREATE, FORMS_UPDATE};
use crate::api_client::{Answer, Call};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::redirect;
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::PATH_SEGMENT;
use crate::viewer::Viewer;

/// Saves a new form, or changes its questions.
pub(super) async fn create(
    State(console): State<Console>,
    viewer: Viewer,
    AccountForm { account, form }: AccountForm,
) -> Response {
    let draft = Draft::posted(&form);
    if !is_save(&form) {
        return changed(&console, &viewer, &Ok(account), &form, Shown { draft, ..Shown::default() }).await;
    }
    let call = Call::of(&FORMS_CREATE).body(draft.body(&console.document, &FORMS_CREATE));
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(created) => {
            let path = form_path(created["formId"].as_str().unwrap_or_default(), "details");
            redirect(&console, &path, Some(Flash::FormCreated))
        }
        Err(refusal) => {
            let shown = Shown { draft, problem: Some(refusal), ..Shown::default() };
            respond(&console, &viewer, &Ok(account), shown).await
        }
    }
}

/// Saves a stored form, or changes its questions.
pub(super) async fn update(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    AccountForm { account, form }: AccountForm,
) -> Response {
    let id = path.get("id").to_owned();
    let draft = Draft::posted(&form);
    let version = form.get("version").map(str::to_owned);
    let shown = Shown { draft, form_id: Some(id.clone()), version, ..Shown::default() };
    if !is_save(&form) {
        return changed(&console, &viewer, &Ok(account), &form, shown).await;
    }
    let mut body = shown.draft.body(&console.document, &FORMS_UPDATE);
    if let (Some(version), false) = (&shown.version, form.get("action") == Some("overwrite")) {
        body["ifUnmodifiedSince"] = json!(version);
    }
    match console.call(&viewer, Call::of(&FORMS_UPDATE).path("id", &id).body(body)).await {
        Ok(_) => redirect(&console, &form_path(&id, "edit"), Some(Flash::FormSaved)),
        Err(refusal) => {
            let account: Answer = Ok(account);
            respond(&console, &viewer, &account, Shown { problem: Some(refusal), ..shown }).await
        }
    }
}

/// Makes the change that a button asks for, and shows the form again.
async fn changed(
    console: &Console,
    viewer: &Viewer,
    account: &Answer,
    form: &FormSubmission,
    mut shown: Shown,
) -> Response {
    let change = Change::parse(form.get("action").unwrap_or_default());
    shown.focus = shown.draft.change(change, form.get("newType").unwrap_or("text"));
    respond(console, viewer, account, shown).await
}

fn is_save(form: &FormSubmission) -> bool {
    form.get("action").is_none_or(|action| matches!(action, "save" | "overwrite"))
}

fn form_path(id: &str, screen: &str) -> String {
    format!("/console/forms/{}/{screen}", utf8_percent_encode(id, PATH_SEGMENT))
}
