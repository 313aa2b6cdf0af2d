//! `GET /api/forms/{id}/results`: the results of a form, if its owner publishes them. The control plane has those for the
//! owner, whose requests have credentials.

use axum::extract::{Request, State};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::{StatusCode, Uri, header};
use uuid::Uuid;
use web::{Code, Path, Problem};

use crate::cors::allow_any_origin;
use crate::proxy;
use crate::state::EdgeState;

/// Routes requests from pages of any origin.
pub(crate) fn route() -> MethodRouter<EdgeState> {
    get(show).layer(map_response(allow_any_origin))
}

async fn show(
    State(state): State<EdgeState>,
    Path(id): Path<Uuid>,
    mut request: Request,
) -> Result<Response, Problem> {
    let open = state.forms.find(id).await?;
    let is_public = open.form.public_results;
    let has_key = request.headers().contains_key(header::AUTHORIZATION);
    if has_key || (!is_public && request.headers().contains_key(header::COOKIE)) {
        if let Ok(uri) = format!("/api/forms/{id}/submissions/results").parse::<Uri>() {
            *request.uri_mut() = uri;
        }
        let response = proxy::to_control_plane(State(state.clone()), request).await;
        // Public results need no key, so they are there for the key of another account too, and while the control plane is
        // down.
        let is_answer = if is_public {
            response.status().is_success()
        } else {
            has_key || response.status() != StatusCode::UNAUTHORIZED
        };
        if is_answer {
            return Ok(response);
        }
    }
    if !is_public {
        let detail = "the results of this form are not public";
        let hint = "its owner can set `publicResults`, or send a key with the scope `submissions:read`";
        return Err(Problem::new(Code::Forbidden, detail).hint(hint));
    }
    let body = state.results.find(state.db.pool(), &open).await?;
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "max-age=1")];
    Ok((headers, body).into_response())
}
