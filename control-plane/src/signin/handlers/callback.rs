//! `/api/auth/oauth/{provider}/callback`: somebody comes back. First it is made sure that this browser was sent, by
//! us, not long ago and for the first time; then the provider is asked who it is.

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use store::sign_ins;
use web::{Path, Problem, Query};

use super::attempt::Kept;
use super::cookie::{self, Cookie};
use super::pages::Notice;
use super::providers::{Brought, Provider, Refusal};
use super::{login, session};
use crate::App;

/// What a provider adds to our address.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

pub(super) async fn finish(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(answer): Query<Answer>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let provider = app.signin.providers.find(&name)?;
    let state = answer.state.unwrap_or_default();
    let Some(begun) = take(&app, &name, &state, &headers).await? else {
        return Ok(not_begun(&app));
    };
    let Some(code) = answer.code.filter(|_| answer.error.is_none()) else {
        tracing::info!(provider = name, error = answer.error, "somebody came back without having signed in");
        return Ok(not_signed_in(&app, provider, &begun));
    };
    let secrets = begun.secrets(state);
    let brought = Brought { code, issuer: answer.iss.as_deref() };
    match provider.identify(brought, &secrets).await {
        Ok(who) => session::begin(&app, &headers, &who, &begun.return_to).await,
        Err(refusal) => {
            tracing::warn!(provider = name, %refusal, "a sign-in is refused");
            Ok(refused(&app, provider, &begun, &refusal))
        }
    }
}

/// What was remembered when this browser was sent out with this `state`; it is forgotten now.
async fn take(app: &App, provider: &str, state: &str, headers: &HeaderMap) -> Result<Option<Kept>, Problem> {
    let Some(browser) = app.signin.cookies.read(Cookie::Browser, headers) else { return Ok(None) };
    let mut conn = store::acquire(&app.db).await?;
    let (state, browser) = (cookie::hash(state), cookie::hash(browser));
    let sealed = sign_ins::take_sign_in(&mut conn, &state, &browser, provider, app.clock.now()).await?;
    sealed.map(|sealed| Kept::open(app, &sealed)).transpose()
}

fn not_begun(app: &App) -> Response {
    app.signin.pages.notice(&Notice {
        status: StatusCode::BAD_REQUEST,
        title: "Please sign in again",
        text: "This sign-in was not begun in this browser, took too long, or was already finished.",
        onward: Some(("/login", "Sign in")),
    })
}

fn not_signed_in(app: &App, provider: &Provider, begun: &Kept) -> Response {
    app.signin.pages.notice(&Notice {
        status: StatusCode::BAD_REQUEST,
        title: "You are not signed in",
        text: &format!("{} did not sign you in: it was cancelled or refused there.", provider.label),
        onward: Some((&login::path(Some(&begun.return_to)), "Try again")),
    })
}

fn refused(app: &App, provider: &Provider, begun: &Kept, refusal: &Refusal) -> Response {
    let label = &provider.label;
    let (status, text) = match refusal {
        Refusal::Away(_) => (StatusCode::BAD_GATEWAY, format!("{label} gives no answer right now.")),
        Refusal::Unbelievable(_) => {
            (StatusCode::BAD_REQUEST, format!("What came back from {label} could not be verified."))
        }
    };
    app.signin.pages.notice(&Notice {
        status,
        title: "You are not signed in",
        text: &text,
        onward: Some((&login::path(Some(&begun.return_to)), "Try again")),
    })
}
