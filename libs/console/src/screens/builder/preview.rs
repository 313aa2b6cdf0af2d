//! Answers the edge with the draft that a page of the builder posts to it, so that the edge can render it.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use contract::FormDraft;
use http::{StatusCode, header};

use super::draft::Draft;
use crate::api_client::operations::FORMS_CREATE;
use crate::screens::AccountForm;
use crate::state::Console;

/// Returns the draft as the body of `forms.create`, to its account alone. Nothing is stored.
pub(super) async fn answer(
    State(console): State<Console>,
    AccountForm { account, form }: AccountForm,
) -> Response {
    let read = |name: &str| account[name].clone();
    let (Ok(account_id), Ok(plan)) =
        (serde_json::from_value(read("id")), serde_json::from_value(read("plan")))
    else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let form = Draft::posted(&form).body(&console.document, &FORMS_CREATE);
    let Ok(body) = serde_json::to_vec(&FormDraft { account_id, plan, form }) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, body).into_response()
}
