//! Sessions: created by a sign-in, identified by a cookie, ended by signing out or by expiry.

use axum::extract::FromRequestParts;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::sessions::{expiry, must_record_use};
use domain::sign_ins::is_claim;
use http::request::Parts;
use http::{HeaderMap, Method};
use store::Conn;
use store::identities::{self, ProviderIdentity};
use store::sessions::{self, NewSession, Session};
use web::Problem;

use super::cookie::Cookie;
use super::first_account;
use super::return_to::login_path;
use super::templates::redirect;
use super::token;
use crate::App;

/// Every sign-in also deletes expired sessions and attempts, at most this many of each.
const EXPIRED_BATCH: i64 = 100;

/// Returns the unexpired session of the request's cookie, and extends it from time to time.
async fn find(app: &App, headers: &HeaderMap) -> Result<Option<SignedIn>, Problem> {
    let Some(token) = app.signin.cookies.read(Cookie::Session, headers) else { return Ok(None) };
    let (now, token_hash) = (app.clock.now(), token::hash(token));
    let mut conn = store::acquire(&app.db).await?;
    let found = sessions::find_session(&mut conn, &token_hash, now).await?;
    let Some(session) = found else { return Ok(None) };
    if must_record_use(now, session.last_seen_at) {
        let expires_at = expiry(now, app.signin.config.idle_timeout(), session.ends_at);
        sessions::update_seen(&mut conn, session.id, now, expires_at).await?;
    }
    Ok(Some(SignedIn { session, token_hash }))
}

/// Signs an identity in: stores it, gives this browser a session with a new token, and ends the browser's previous
/// session. Returns a redirect to `return_to`.
///
/// An identity without an account gets a free one in the same transaction, unless it is about to claim a trial.
pub(super) async fn begin(
    app: &App,
    headers: &HeaderMap,
    identity: &ProviderIdentity,
    return_to: &str,
) -> Result<Response, Problem> {
    let now = app.clock.now();
    let token = token::generate(&app.rng);
    let mut tx = store::begin(&app.db).await?;
    let identity_id = identities::upsert_identity(&mut tx, app.rng.uuid_v7(now), identity, now).await?;
    // The insert or update has locked the identity, so a second sign-in at the same time waits and finds the account.
    let accounts = identities::list_accounts(&mut tx, identity_id).await?;
    let first = if accounts.is_empty() && !is_claim(return_to) {
        Some(first_account::insert(app, &mut tx, identity_id, now).await?)
    } else {
        None
    };
    let ends_at = now + app.signin.config.max_age();
    let session = NewSession {
        id: app.rng.uuid_v7(now),
        token_hash: token::hash(&token),
        identity_id,
        account_id: accounts.first().map(|account| account.id).or(first.as_ref().map(|account| account.id)),
        created_at: now,
        expires_at: expiry(now, app.signin.config.idle_timeout(), ends_at),
        ends_at,
    };
    let previous = app.signin.cookies.read(Cookie::Session, headers).map(token::hash);
    if let Some(token_hash) = &previous {
        sessions::delete_session(&mut tx, token_hash).await?;
    }
    sessions::insert_session(&mut tx, &session).await?;
    delete_expired(&mut tx, now).await?;
    app.commit(tx, first.map(|account| account.change).into_iter().collect()).await?;
    app.credentials.invalidate(previous.as_slice());
    let mut response = redirect(return_to);
    let set = app.signin.cookies.set(Cookie::Session, &token, ends_at - now);
    response.headers_mut().append(http::header::SET_COOKIE, set);
    Ok(response)
}

/// Ends the session of the request's cookie.
pub(super) async fn end(app: &App, headers: &HeaderMap) -> Result<Response, Problem> {
    if let Some(token_hash) = app.signin.cookies.read(Cookie::Session, headers).map(token::hash) {
        let mut conn = store::acquire(&app.db).await?;
        sessions::delete_session(&mut conn, &token_hash).await?;
        app.credentials.invalidate(&[token_hash]);
    }
    let mut response = redirect("/login");
    response.headers_mut().append(http::header::SET_COOKIE, app.signin.cookies.clear(Cookie::Session));
    Ok(response)
}

async fn delete_expired(conn: &mut Conn, now: DateTime<Utc>) -> Result<(), store::Error> {
    sessions::delete_expired(conn, now, EXPIRED_BATCH).await?;
    store::sign_ins::delete_expired(conn, now, EXPIRED_BATCH).await
}

/// An extractor of the request's session, if there is one.
#[derive(Debug)]
pub(super) struct OptionalSession(pub(super) Option<Session>);

impl FromRequestParts<App> for OptionalSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        Ok(Self(find(app, &parts.headers).await?.map(|found| found.session)))
    }
}

/// An extractor of the request's session. Requests without one are redirected to sign in and return.
#[derive(Debug)]
pub(super) struct SignedIn {
    pub(super) session: Session,
    /// The key of the session in the [`CredentialCache`](crate::credential_cache::CredentialCache).
    pub(super) token_hash: [u8; 32],
}

impl FromRequestParts<App> for SignedIn {
    type Rejection = Result<Response, Problem>;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        match find(app, &parts.headers).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                // A posted form is lost; its page can be shown again only where both have the same path.
                let is_page = parts.method == Method::GET || parts.uri.path().starts_with("/claim/");
                Err(Ok(redirect(&login_path(is_page.then(|| parts.uri.path())))))
            }
            Err(problem) => Err(Err(problem)),
        }
    }
}
