//! Sends a delivery of a submission again.

use axum::extract::State;
use axum::response::Response;
use percent_encoding::utf8_percent_encode;

use super::show::{Shown, show};
use crate::api_client::Call;
use crate::api_client::operations::DELIVERIES_RETRY;
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::redirect;
use crate::screens::{PathParameters, require_same_account};
use crate::state::Console;
use crate::url_query::{PATH_SEGMENT, UrlQuery};
use crate::viewer::Viewer;

/// Sends the posted delivery again, and leads back to the submission.
pub(crate) async fn retry(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: FormSubmission,
) -> Response {
    if let Err(refused) = require_same_account(&console, &viewer, &form).await {
        return *refused;
    }
    let (form_id, id) = (path.get("id"), path.get("submission"));
    let call = Call::of(&DELIVERIES_RETRY)
        .path("id", form.get("webhook").unwrap_or_default())
        .path("deliveryId", form.get("delivery").unwrap_or_default());
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(_) => {
            let segment = |text| utf8_percent_encode(text, PATH_SEGMENT);
            let path = format!("/console/forms/{}/submissions/{}", segment(form_id), segment(id));
            redirect(&console, &path, Some(Flash::SentAgain))
        }
        Err(refusal) => {
            let shown = Shown { chosen: Some(id), problem: Some(refusal), ..Shown::default() };
            show(&console, &viewer, form_id, &UrlQuery::default(), shown).await
        }
    }
}
