//! Sends a delivery of a submission again.

use axum::extract::State;
use axum::response::Response;

use super::page_path::submission_path;
use super::show::{Shown, show};
use crate::api_client::Call;
use crate::api_client::operations::DELIVERIES_RETRY;
use crate::flash::Flash;
use crate::page::redirect;
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Sends the posted delivery again, and leads back to the submission.
pub(super) async fn retry(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let (form_id, id) = (path.get("id"), path.get("submission"));
    let call = Call::of(&DELIVERIES_RETRY)
        .path("id", form.get("webhook").unwrap_or_default())
        .path("deliveryId", form.get("delivery").unwrap_or_default());
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(_) => redirect(&console, &submission_path(form_id, id), Some(Flash::SentAgain)),
        Err(refusal) => {
            let shown = Shown { chosen: Some(id), problem: Some(refusal), ..Shown::default() };
            show(&console, &viewer, form_id, &UrlQuery::default(), shown).await
        }
    }
}
