//! Authenticates a request: the caller of its API key, or of the session cookie of a browser.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use store::credentials::Caller;
use web::{Challenge, Code, Problem};

use crate::App;
use crate::signin::cookie::Cookie;
use crate::signin::{origin, token};

/// Returns the caller of a request, or a problem whose 401 names the scheme (RFC 6750, 3).
pub(crate) async fn authenticate(app: &App, parts: &Parts) -> Result<Arc<Caller>, Problem> {
    find_caller(app, parts).await.map_err(|problem| match problem.status() {
        StatusCode::UNAUTHORIZED if bearer(&parts.headers).is_some() => {
            problem.challenge(Challenge::InvalidToken)
        }
        StatusCode::UNAUTHORIZED => problem.challenge(Challenge::Bearer),
        _ => problem,
    })
}

/// Returns the caller of a request. A session cookie authenticates a write only if the request has this host's `Origin`.
async fn find_caller(app: &App, parts: &Parts) -> Result<Arc<Caller>, Problem> {
    let now = app.clock.now();
    if let Some(key) = bearer(&parts.headers) {
        return app.credentials.by_key(key, now).await;
    }
    let Some(session_token) = app.signin.cookies.read(Cookie::Session, &parts.headers) else {
        let detail = "this call requires an API key in the header `Authorization: Bearer <key>`";
        return Err(Problem::new(Code::Unauthenticated, detail).hint("get one with POST /api/trial"));
    };
    let caller = app.credentials.by_session(token::hash(session_token), now).await?;
    if !parts.method.is_safe() && !origin::is_same_origin(&parts.headers, &app.addresses) {
        let detail =
            format!("with a session cookie this call is allowed only from pages of {}", app.addresses.base());
        return Err(Problem::new(Code::ForeignOrigin, detail)
            .hint("send an `Origin` header with that address, or use an API key"));
    }
    Ok(caller)
}

/// Returns the key of a `Bearer` header; other schemes carry no API key.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}
