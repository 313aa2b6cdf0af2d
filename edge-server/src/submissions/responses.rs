//! The responses to a submission: pages and redirects for browsers, JSON for API clients.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use domain::FieldError;
use domain::answers::Answers;
use domain::forms::ClosedReason;
use domain::honeypot;
use http::{HeaderValue, StatusCode, header};
use store::forms::OpenForm;
use web::{Code, Problem};

use super::confirmation;
use super::idempotency::Receipt;
use super::submitted_body::{ClientKind, SubmittedBody};
use crate::cpu_work::{Busy, Tenant};
use crate::forms::closed;
use crate::forms::form_cache::page_bytes;
use crate::forms::pages::view_model::Prefill;
use crate::forms::redirect::location;
use crate::state::EdgeState;
use crate::uploads::form_files::binding;

/// Responds to one submission.
pub(super) struct Responder<'a> {
    pub(super) state: &'a EdgeState,
    pub(super) body: &'a SubmittedBody,
    pub(super) client: ClientKind,
}

impl Responder<'_> {
    /// The response for a stored submission. Browsers are redirected, so that a reload does not submit again.
    pub(super) fn stored(&self, open: &OpenForm, receipt: &Receipt) -> Response {
        match (self.client, location(open, self.body.presentation)) {
            (ClientKind::Browser, Some(location)) => {
                (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
            }
            _ => {
                let headers = [(header::CONTENT_TYPE, "application/json")];
                (StatusCode::CREATED, headers, receipt.0.clone()).into_response()
            }
        }
    }

    /// The stored response to an earlier call with the same idempotency key. A browser is asked for the confirmation as long
    /// as the submission waits for it.
    pub(super) async fn replayed(&self, open: &OpenForm, receipt: &Receipt) -> Result<Response, Problem> {
        let suspect = receipt.submission_id().filter(|_| self.client == ClientKind::Browser);
        let mut response = match suspect {
            Some(id) if confirmation::is_waiting(self.state, open, id).await? => {
                confirmation::ask(self.state, open, self.body.presentation, id)
            }
            _ => self.stored(open, receipt),
        };
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
        Ok(response)
    }

    /// The form with the answers and their errors.
    pub(super) async fn invalid(
        &self,
        open: &Arc<OpenForm>,
        answers: Answers,
        errors: Vec<FieldError>,
    ) -> Result<Response, Problem> {
        if self.client == ClientKind::Api {
            return Err(Problem::validation(errors));
        }
        let files = binding::find_unbound(self.state, open, &answers).await?;
        // The token of the first display, so that a quick correction does not look like a robot.
        let token = self.body.field(honeypot::fields::TOKEN).map(str::to_owned);
        let (renderer, open) = (Arc::clone(&self.state.form_renderer), Arc::clone(open));
        let (presentation, now) = (self.body.presentation, self.state.clock.now());
        let (tenant, bytes) = (Tenant::Visitors(open.account_id), page_bytes(&open));
        let render = move || {
            let prefill = Prefill { answers, errors: &errors, files: &files, token: token.as_deref() };
            renderer.form(&open, presentation, &prefill, now)
        };
        self.state.cpu.run(tenant, bytes, render).await.map_err(|Busy| Problem::nothing_changed())
    }

    pub(super) fn closed(&self, open: &OpenForm, reason: ClosedReason) -> Result<Response, Problem> {
        match self.client {
            ClientKind::Browser => Ok(self.state.form_renderer.closed(open, self.body.presentation, reason)),
            ClientKind::Api => Err(closed::problem(reason)),
        }
    }

    pub(super) fn duplicate(&self, open: &OpenForm) -> Result<Response, Problem> {
        match self.client {
            ClientKind::Browser => Ok(self.state.form_renderer.duplicate(open, self.body.presentation)),
            ClientKind::Api => {
                Err(Problem::new(Code::DuplicateSubmission, "These answers were received before."))
            }
        }
    }
}
