//! The pages of a form that are not answered from the cache: the form itself, and its thank-you page.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use store::forms::OpenForm;
use uuid::Uuid;
use web::{Path, Problem};

use super::closed::closed_reason;
use super::page_lookup::respond;
use super::pages::page::Presentation;
use super::pages::prefill;
use crate::cpu_work::{Busy, Tenant};
use crate::sites::pages::encodings::Accepted;
use crate::state::EdgeState;

/// Larger forms are shown without answers and colours from the URL: each such page is rendered for one request.
const MAX_PREFILLED_BYTES: usize = 256 * 1024;

/// `GET /f/{id}`: the form.
pub(crate) async fn show(
    State(state): State<EdgeState>,
    id: Result<Path<Uuid>, Problem>,
    request: Request,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let presentation = Presentation::from_request(query, request.headers());
    let open = match find(&state, id).await {
        Ok(open) => open,
        Err(problem) => return state.form_renderer.problem(presentation, &problem),
    };
    let now = state.clock.now();
    if let Some(reason) = closed_reason(&open, now) {
        return state.form_renderer.closed(&open, presentation, reason);
    }
    let cached = presentation.cached();
    let Some(page) = state.forms.page(&state.form_renderer, &open, cached).await else {
        return state.form_renderer.problem(presentation, &Problem::nothing_changed());
    };
    let answers = prefill::read(&open.form.fields, query);
    if (answers.is_empty() && presentation == cached) || page.len() > MAX_PREFILLED_BYTES {
        return respond(&state, &page, request.headers()).map(Body::new);
    }
    let (renderer, accepted) = (Arc::clone(&state.form_renderer), Accepted::from_headers(request.headers()));
    let tenant = Tenant::Visitors(open.account_id);
    let render = move || renderer.prefilled(&open, presentation, answers, accepted, now);
    match state.cpu.run(tenant, page.len(), render).await {
        Ok(response) => response,
        Err(Busy) => state.form_renderer.problem(presentation, &Problem::nothing_changed()),
    }
}

/// `GET /f/{id}/thanks`: the page after a submission.
pub(crate) async fn thank(
    State(state): State<EdgeState>,
    id: Result<Path<Uuid>, Problem>,
    request: Request,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let presentation = Presentation::from_request(query, request.headers());
    match find(&state, id).await {
        Ok(open) => state.form_renderer.thanks(&open, presentation),
        Err(problem) => state.form_renderer.problem(presentation, &problem),
    }
}

async fn find(state: &EdgeState, id: Result<Path<Uuid>, Problem>) -> Result<Arc<OpenForm>, Problem> {
    let Path(id) = id?;
    state.forms.find(id).await
}
