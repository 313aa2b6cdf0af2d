//! Sessions: begun by a sign-in, known by a cookie, ended by signing out or by time.

use axum::extract::FromRequestParts;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::sessions::{expiry, is_to_be_noted};
use http::request::Parts;
use http::{HeaderMap, Method};
use store::Conn;
use store::identities::{self, Vouched};
use store::sessions::{self, NewSession, Session};
use web::Problem;

use super::cookie::{self, Cookie};
use super::{login, pages};
use crate::App;

/// Sessions and sign-ins that have ended are cleared away by those who begin anew, a few at a time.
const CLEARED_AT_ONCE: i64 = 100;

/// The session of whoever sent these headers, if it goes on. Notes now and then that it is in use.
async fn find(app: &App, headers: &HeaderMap) -> Result<Option<SignedIn>, Problem> {
    let Some(token) = app.signin.cookies.read(Cookie::Session, headers) else { return Ok(None) };
    let (now, token_hash) = (app.clock.now(), cookie::hash(token));
    let mut conn = store::acquire(&app.db).await?;
    let found = sessions::find_session(&mut conn, &token_hash, now).await?;
    let Some(session) = found else { return Ok(None) };
    if is_to_be_noted(now, session.last_seen_at) {
        let expires_at = expiry(now, app.signin.config.idle(), session.ends_at);
        sessions::update_seen(&mut conn, session.id, now, expires_at).await?;
    }
    Ok(Some(SignedIn { session, token_hash }))
}

/// Signs somebody in: their identity is remembered, and this browser gets a session with a token it never had
/// before. What it had before ends. Gives the way onwards.
pub(super) async fn begin(
    app: &App,
    headers: &HeaderMap,
    who: &Vouched,
    return_to: &str,
) -> Result<Response, Problem> {
    let now = app.clock.now();
    let token = super::token(&app.rng);
    let mut tx = store::begin(&app.db).await?;
    let identity_id = identities::upsert_identity(&mut tx, app.rng.uuid_v7(now), who, now).await?;
    let accounts = identities::list_accounts(&mut tx, identity_id).await?;
    let ends_at = now + app.signin.config.absolute();
    let session = NewSession {
        id: app.rng.uuid_v7(now),
        token_hash: cookie::hash(&token),
        identity_id,
        account_id: accounts.first().map(|account| account.id),
        created_at: now,
        expires_at: expiry(now, app.signin.config.idle(), ends_at),
        ends_at,
    };
    let before = app.signin.cookies.read(Cookie::Session, headers).map(cookie::hash);
    if let Some(token_hash) = &before {
        sessions::delete_session(&mut tx, token_hash).await?;
    }
    sessions::insert_session(&mut tx, &session).await?;
    clear_away(&mut tx, now).await?;
    store::commit(tx).await.map_err(Problem::outcome_unknown)?;
    app.callers.forget(before.as_slice());
    let mut response = pages::go_to(return_to);
    let set = app.signin.cookies.set(Cookie::Session, &token, ends_at - now);
    response.headers_mut().append(http::header::SET_COOKIE, set);
    Ok(response)
}

/// Ends the session of whoever sent these headers.
pub(super) async fn end(app: &App, headers: &HeaderMap) -> Result<Response, Problem> {
    if let Some(token_hash) = app.signin.cookies.read(Cookie::Session, headers).map(cookie::hash) {
        let mut conn = store::acquire(&app.db).await?;
        sessions::delete_session(&mut conn, &token_hash).await?;
        app.callers.forget(&[token_hash]);
    }
    let mut response = pages::go_to("/login");
    response.headers_mut().append(http::header::SET_COOKIE, app.signin.cookies.clear(Cookie::Session));
    Ok(response)
}

async fn clear_away(conn: &mut Conn, now: DateTime<Utc>) -> Result<(), store::Error> {
    sessions::delete_expired(conn, now, CLEARED_AT_ONCE).await?;
    store::sign_ins::delete_expired(conn, now, CLEARED_AT_ONCE).await
}

/// Whoever asks, signed in or not.
#[derive(Debug)]
pub(super) struct Visitor(pub(super) Option<Session>);

impl FromRequestParts<App> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        Ok(Self(find(app, &parts.headers).await?.map(|found| found.session)))
    }
}

/// Somebody signed in. Others are sent to sign in, and come back.
#[derive(Debug)]
pub(super) struct SignedIn {
    pub(super) session: Session,
    /// By what [`crate::callers::Callers`] remembers the session.
    pub(super) token_hash: [u8; 32],
}

impl FromRequestParts<App> for SignedIn {
    type Rejection = Result<Response, Problem>;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        match find(app, &parts.headers).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                // What was posted is gone; the page it was posted from is not, where it has the same address.
                let is_page = parts.method == Method::GET || parts.uri.path().starts_with("/claim/");
                Err(Ok(pages::go_to(&login::path(is_page.then(|| parts.uri.path())))))
            }
            Err(problem) => Err(Err(problem)),
        }
    }
}
