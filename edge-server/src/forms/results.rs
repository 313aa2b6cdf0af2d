//! `GET /api/forms/{id}/results`: the results of a form, if its owner publishes them.

use axum::extract::State;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::header;
use uuid::Uuid;
use web::{Code, Path, Problem};

use crate::cors::allow_any_origin;
use crate::state::EdgeState;

/// Routes requests from pages of any origin.
pub(crate) fn route() -> MethodRouter<EdgeState> {
    get(show).layer(map_response(allow_any_origin))
}

async fn show(State(state): State<EdgeState>, Path(id): Path<Uuid>) -> Result<Response, Problem> {
    let open = state.forms.find(id).await?;
    if !open.form.public_results {
        let detail = "the results of this form are not public";
        return Err(Problem::new(Code::Forbidden, detail).hint("its owner can set `publicResults`"));
    }
    let body = state.results.find(state.db.pool(), &open).await?;
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "max-age=1")];
    Ok((headers, body).into_response())
}
