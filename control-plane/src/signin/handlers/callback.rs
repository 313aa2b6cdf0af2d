//! `/api/auth/oauth/{provider}/callback`: the return from a provider. Checks that this browser started this sign-in, that
//! it has not expired and is used for the first time, and then fetches the identity from the provider.

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use store::sign_ins;
use web::{Path, Problem, Query};

use super::attempt::SignInState;
use crate::App;
use crate::signin::cookie::Cookie;
use crate::signin::providers::{CallbackParams, Provider, ProviderError};
use crate::signin::return_to::login_path;
use crate::signin::templates::Notice;
use crate::signin::{session, token};

/// The query that a provider adds to the callback URL.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::signin) struct CallbackQuery {
    state: Option<String>,
    code: Option<String>,
    error: Option<String>,
    iss: Option<String>,
}

pub(in crate::signin) async fn finish(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<CallbackQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let provider = app.signin.providers.find(&name)?;
    let state = query.state.unwrap_or_default();
    let Some(sign_in) = consume(&app, &name, &state, &headers).await? else {
        return Ok(expired(&app));
    };
    let Some(code) = query.code.filter(|_| query.error.is_none()) else {
        tracing::info!(provider = name, error = query.error, "a provider returned without a code");
        return Ok(not_signed_in(&app, provider, &sign_in));
    };
    let secrets = sign_in.secrets(&app, state);
    let params = CallbackParams { code, issuer: query.iss.as_deref() };
    match provider.identify(params, &secrets).await {
        Ok(identity) => session::begin(&app, &headers, &identity, &sign_in.return_to).await,
        Err(error) => {
            tracing::warn!(provider = name, %error, "a sign-in failed");
            Ok(failed(&app, provider, &sign_in, &error))
        }
    }
}

/// Deletes and returns the state of the sign-in that this browser started with this `state`.
async fn consume(
    app: &App,
    provider: &str,
    state: &str,
    headers: &HeaderMap,
) -> Result<Option<SignInState>, Problem> {
    let Some(browser) = app.signin.cookies.read(Cookie::Browser, headers) else { return Ok(None) };
    let mut conn = store::acquire(&app.db).await?;
    let (state, browser) = (token::hash(state), token::hash(browser));
    let sealed = sign_ins::consume_sign_in(&mut conn, &state, &browser, provider, app.clock.now()).await?;
    sealed.map(|sealed| SignInState::open(app, &sealed)).transpose()
}

fn expired(app: &App) -> Response {
    app.signin.templates.notice(&Notice {
        status: StatusCode::BAD_REQUEST,
        title: "Please sign in again",
        text: "This sign-in was not started in this browser, took too long, or is already finished.",
        link: Some(("/login", "Sign in")),
    })
}

fn not_signed_in(app: &App, provider: &Provider, sign_in: &SignInState) -> Response {
    app.signin.templates.notice(&Notice {
        status: StatusCode::BAD_REQUEST,
        title: "You are not signed in",
        text: &format!("{} did not sign you in: it was cancelled or refused there.", provider.label),
        link: Some((&login_path(Some(&sign_in.return_to)), "Try again")),
    })
}

fn failed(app: &App, provider: &Provider, sign_in: &SignInState, error: &ProviderError) -> Response {
    let label = &provider.label;
    let (status, text) = match error {
        ProviderError::Unavailable(_) => {
            (StatusCode::BAD_GATEWAY, format!("{label} does not respond right now."))
        }
        ProviderError::Invalid(_) => {
            (StatusCode::BAD_REQUEST, format!("The response of {label} could not be verified."))
        }
    };
    app.signin.templates.notice(&Notice {
        status,
        title: "You are not signed in",
        text: &text,
        link: Some((&login_path(Some(&sign_in.return_to)), "Try again")),
    })
}
