//! `POST /f/preview`: a draft of a form as its page would show it. Nothing is stored.
//!
//! The base host must not show what a stranger posts to it. So the edge passes the request on to the console, which knows the
//! session and accepts posts of its own pages only, and renders the draft that the console answers with. The calls of an
//! account and of an address are limited there. The page can be framed by the console alone, runs no script and sends
//! nothing.

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use contract::{FormDraft, form_draft};
use domain::appearance::Appearance;
use domain::fields::Field;
use domain::forms::{self, Settings};
use http::{HeaderValue, StatusCode, Uri, header};
use http_body_util::{BodyExt, Collected, Limited};
use schemars::JsonSchema;
use serde::Deserialize;
use store::forms::{Form, OpenForm};
use uuid::Uuid;

use super::form_cache::page_bytes;
use super::pages::page::Presentation;
use crate::cpu_work::{Busy, Tenant};
use crate::proxy;
use crate::state::EdgeState;

/// Most bytes of a posted draft, and of the console's answer.
const MAX_BYTES: usize = 1 << 20;
/// Most errors that the page lists.
const MAX_ERRORS: usize = 5;

/// The parts of a draft that its page shows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Draft {
    #[serde(default)]
    name: String,
    #[serde(default)]
    fields: Vec<Field>,
    submit_label: Option<String>,
    #[serde(default)]
    appearance: Appearance,
}

/// Why a draft is not shown, in words.
type Refusal = (StatusCode, String);

/// Shows the draft, or why it can't be shown.
pub(crate) async fn show(State(state): State<EdgeState>, request: Request) -> Response {
    let presentation = Presentation::from_request("", request.headers());
    let refuse =
        |(status, message): Refusal| state.form_renderer.draft_notice(presentation, status, &message);
    let draft = match ask_console(&state, request).await {
        Ok(draft) => draft,
        Err(refusal) => return refuse(refusal),
    };
    let open = match read(&state, draft) {
        Ok(open) => open,
        Err(message) => return refuse((StatusCode::BAD_REQUEST, message)),
    };
    let (tenant, bytes) = (Tenant::Visitors(open.account_id), page_bytes(&open));
    let renderer = state.form_renderer.clone();
    let rendered = state.cpu.run(tenant, bytes, move || renderer.draft(&open, presentation)).await;
    rendered.unwrap_or_else(|Busy| refuse(unavailable()))
}

/// Returns the draft if the console accepts the request.
async fn ask_console(state: &EdgeState, request: Request) -> Result<FormDraft, Refusal> {
    let (mut head, body) = request.into_parts();
    let body = collect(body).await.ok_or_else(|| {
        (StatusCode::PAYLOAD_TOO_LARGE, "The form is too large to be shown here.".to_owned())
    })?;
    head.uri = Uri::from_static(form_draft::PATH);
    head.headers.remove(header::ACCEPT_ENCODING);
    let response =
        proxy::to_control_plane(State(state.clone()), Request::from_parts(head, body.into())).await;
    let (head, body) = response.into_parts();
    let is_json =
        head.headers.get(header::CONTENT_TYPE) == Some(&HeaderValue::from_static("application/json"));
    let message = match head.status {
        StatusCode::OK if is_json => {
            let draft = collect(body).await.and_then(|body| serde_json::from_slice(&body).ok());
            return draft.ok_or_else(unavailable);
        }
        // The console leads to the sign-in page.
        StatusCode::UNAUTHORIZED | StatusCode::SEE_OTHER => {
            "Sign in to the console to see a form before it is saved."
        }
        StatusCode::FORBIDDEN => "A form that is not saved is shown only to its owner, in the console.",
        StatusCode::CONFLICT => "You switched to another account. Open the page of this form again.",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests. Please wait a moment.",
        status if status.is_client_error() => "The form could not be read.",
        _ => return Err(unavailable()),
    };
    let status = if head.status.is_client_error() { head.status } else { StatusCode::UNAUTHORIZED };
    Err((status, message.to_owned()))
}

async fn collect(body: Body) -> Option<Bytes> {
    Limited::new(body, MAX_BYTES).collect().await.map(Collected::to_bytes).ok()
}

fn unavailable() -> Refusal {
    (StatusCode::SERVICE_UNAVAILABLE, "Please try again.".to_owned())
}

/// Returns the form of a draft. Only a valid one is rendered: names of fields become part of style rules.
fn read(state: &EdgeState, draft: FormDraft) -> Result<OpenForm, String> {
    let FormDraft { account_id, plan, form } = draft;
    let draft: Draft = web::read_item(form).map_err(|problem| problem.detail().to_owned())?;
    let errors = forms::check(&Settings {
        name: Some(&draft.name),
        fields: Some(&draft.fields),
        submit_label: draft.submit_label.as_deref(),
        appearance: Some(&draft.appearance),
        ..Settings::default()
    });
    if !errors.is_empty() {
        let messages: Vec<_> = errors.into_iter().take(MAX_ERRORS).map(|error| error.message).collect();
        return Err(messages.join("\n"));
    }
    let mut form = Form::new(Uuid::nil(), draft.name, draft.fields, state.clock.now());
    form.submit_label = draft.submit_label;
    form.appearance = draft.appearance;
    // Invisible, and of no use without a submission.
    (form.spam.honeypot, form.spam.proof_of_work) = (false, false);
    Ok(OpenForm { account_id, plan, suspended: false, listeners: 0, form })
}
