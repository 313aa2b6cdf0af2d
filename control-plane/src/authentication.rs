//! Authenticates a request: the caller of its API key, or of the session cookie of a browser.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use store::credentials::Caller;
use web::{Challenge, Code, Problem};

use crate::App;
use crate::signin::cookie::Cookie;
use crate::signin::{origin, token};

/// Extension of a request that this process sends to itself for a client that it has authenticated and admitted. Nothing in
/// a client's request adds an extension, and only the gateway of the MCP endpoint makes this one.
#[derive(Debug, Clone)]
pub(crate) struct Authenticated(pub(crate) Arc<Caller>);

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

/// Returns the caller of an API key, for an address that takes no session. Its 401 names no scheme yet.
pub(crate) async fn authenticate_key(app: &App, headers: &HeaderMap) -> Result<Arc<Caller>, Problem> {
    let key = bearer(headers).ok_or_else(missing_key)?;
    app.credentials.by_key(key, app.clock.now()).await
}

fn missing_key() -> Problem {
    let detail = "this call requires an API key in the header `Authorization: Bearer <key>`";
    Problem::new(Code::Unauthenticated, detail).hint("get one with POST /api/trial")
}

/// Returns the caller of a request. A session cookie authenticates a write only if the request has this host's `Origin`.
async fn find_caller(app: &App, parts: &Parts) -> Result<Arc<Caller>, Problem> {
    if let Some(Authenticated(caller)) = parts.extensions.get() {
        return Ok(Arc::clone(caller));
    }
    let now = app.clock.now();
    if let Some(key) = bearer(&parts.headers) {
        return app.credentials.by_key(key, now).await;
    }
    let Some(session_token) = app.signin.cookies.read(Cookie::Session, &parts.headers) else {
        return Err(missing_key());
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                found.push(path);
            }
        }
    }

    /// The extension stands for a check of the key, so it must be made where the key was checked, and nowhere else.
    #[test]
    fn only_the_gateway_makes_the_extension_of_an_authenticated_client() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        sources(&source, &mut found);
        let made = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            text.contains(concat!("insert(", "Authenticated("))
                || text.contains(concat!("= ", "Authenticated("))
        };
        found.retain(made);
        assert_eq!(found, [source.join("mcp/gateway.rs")]);
        let (parts, ()) = http::Request::post("/api/mcp")
            .header("authenticated", "true")
            .header("x-extension", "Authenticated")
            .body(())
            .unwrap()
            .into_parts();
        assert!(parts.extensions.is_empty(), "headers add no extension");
    }
}
