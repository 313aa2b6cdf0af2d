//! The sessions of the person who calls, in a browser. An API key has none.

use axum::extract::State;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use store::credentials::Credential;
use store::identities::{OwnAccount, find_identity, list_accounts};
use store::sessions::{ListedSession, delete_own_session, list_sessions};
use uuid::Uuid;
use web::{Deletion, Path, Problem, Reply};

use crate::App;
use crate::call::{Call, scope};

/// Most sessions in a response.
const MAX: i64 = 100;

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("sessions")
        .get("/api/session", current, "Get the calling session: who signed in, when, and their accounts")
        .get("/api/sessions", list, "List the current sessions of the calling person, newest first")
        .delete("/api/sessions/{id}", delete, "End a session of the calling person")
        .extension()
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CurrentSessionResponse {
    #[serde(flatten)]
    session: SignInSessionView,
    /// Until when the session may do what needs a recent sign-in; afterwards such calls are 403 `sign_in_again`.
    fresh_until: DateTime<Utc>,
    /// Who signed in.
    identity: SignInIdentity,
    /// The accounts of the person, the newest first.
    accounts: Vec<SignInAccount>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SignInIdentity {
    /// Name as the provider reports it; null if it does not.
    name: Option<String>,
    /// E-mail address as the provider reports it; null if it does not.
    email: Option<String>,
    /// Issuer of the provider.
    provider: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignInAccount {
    id: Uuid,
    /// Name of the account; null for none.
    name: Option<String>,
    /// Plan of the account.
    plan: &'static str,
    /// Its oldest subdomain; null for none.
    subdomain: Option<String>,
    /// Whether the session works on this account.
    is_current: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignInSessionView {
    /// Id of the session, which is not its secret.
    id: Uuid,
    /// Whether it is the calling session.
    is_current: bool,
    /// When the person signed in.
    signed_in_at: DateTime<Utc>,
    /// When it was last used, to the minute.
    last_seen_at: DateTime<Utc>,
    /// When it ends without further use.
    expires_at: DateTime<Utc>,
    /// When it ends in any case.
    ends_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SignInSessionListResponse {
    /// The sessions, at most 100.
    sessions: Vec<SignInSessionView>,
}

async fn current(
    call: Call<scope::AccountRead>,
    State(app): State<App>,
) -> Result<Reply<CurrentSessionResponse>, Problem> {
    let (identity_id, session) = calling_session(&call).ok_or_else(no_such_session)?;
    let mut conn = store::acquire(&app.db).await?;
    let identity = find_identity(&mut conn, identity_id).await?;
    let identity = identity.ok_or_else(no_such_session)?;
    let accounts = list_accounts(&mut conn, identity_id).await?;
    let account_id = call.account_id;
    let account = |own: OwnAccount| SignInAccount {
        id: own.id,
        name: own.name,
        plan: own.plan.as_str(),
        subdomain: own.subdomain,
        is_current: own.id == account_id,
    };
    Ok(call.reply(CurrentSessionResponse {
        fresh_until: session.signed_in_at + app.signin.config.fresh_for(),
        session,
        identity: SignInIdentity { name: identity.name, email: identity.email, provider: identity.issuer },
        accounts: accounts.into_iter().map(account).collect(),
    }))
}

async fn list(
    call: Call<scope::AccountRead>,
    State(app): State<App>,
) -> Result<Reply<SignInSessionListResponse>, Problem> {
    let Some((identity_id, current)) = calling_session(&call) else {
        return Ok(call.reply(SignInSessionListResponse { sessions: Vec::new() }));
    };
    let mut conn = store::acquire(&app.db).await?;
    let sessions = list_sessions(&mut conn, identity_id, call.now, MAX).await?;
    let view = |session: ListedSession| SignInSessionView {
        id: session.id,
        is_current: session.id == current.id,
        signed_in_at: session.signed_in_at,
        last_seen_at: session.last_seen_at,
        expires_at: session.expires_at,
        ends_at: session.ends_at,
    };
    Ok(call.reply(SignInSessionListResponse { sessions: sessions.into_iter().map(view).collect() }))
}

async fn delete(
    call: Call<scope::AccountUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    let (identity_id, _) = calling_session(&call).ok_or_else(no_such_session)?;
    let mut conn = store::acquire(&app.db).await?;
    let token_hash = delete_own_session(&mut conn, identity_id, id, call.now).await?;
    let token_hash = token_hash.ok_or_else(no_such_session)?;
    app.credentials.invalidate(&[token_hash]);
    Ok(call.reply(Deletion::now()))
}

/// Returns the person of the calling session and the session; `None` for a key.
fn calling_session<S>(call: &Call<S>) -> Option<(Uuid, SignInSessionView)> {
    match call.caller.credential {
        Credential::Session { id, identity_id, signed_in_at, expires_at, last_seen_at, ends_at } => {
            let is_current = true;
            let session =
                SignInSessionView { id, is_current, signed_in_at, last_seen_at, expires_at, ends_at };
            Some((identity_id, session))
        }
        Credential::Key { .. } => None,
    }
}

/// The problem of a session that does not exist. A key has none.
fn no_such_session() -> Problem {
    Problem::not_found("session")
        .hint("sessions are those of a person who is signed in, at /login; an API key has none")
}
