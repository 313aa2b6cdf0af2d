//! `/account`: shows the visitor's identity and accounts, switches between accounts, creates a first one, and signs out.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use contract::Change;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use store::identities::{self, OwnAccount};
use store::sessions::{self, Session};
use store::{Conn, claims};
use web::Problem;

use crate::signin::form::form_values;
use crate::signin::origin::SameOrigin;
use crate::signin::session::{self, SignedIn};
use crate::signin::templates::{Notice, redirect};
use crate::{App, initial_subdomain};

pub(in crate::signin) async fn show(
    State(app): State<App>,
    SignedIn { session, .. }: SignedIn,
) -> Result<Response, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let identity = identities::find_identity(&mut conn, session.identity_id).await?;
    let identity = identity.ok_or_else(|| Problem::not_found("identity"))?;
    let accounts = identities::list_accounts(&mut conn, session.identity_id).await?;
    let (current, others): (Vec<_>, Vec<_>) =
        accounts.iter().partition(|account| Some(account.id) == session.account_id);
    let context = json!({
        "identity": {
            "name": identity.name,
            "email": identity.email,
            "subject": identity.subject,
            "through": identity.issuer.trim_start_matches("https://"),
        },
        "current": current.first().map(|account| account_context(&app, account)),
        "others": others.iter().map(|account| account_context(&app, account)).collect::<Vec<_>>(),
        "base": app.addresses.base(),
    });
    Ok(app.signin.templates.show_form("account.html", &context))
}

fn account_context(app: &App, account: &OwnAccount) -> Value {
    let site = account.subdomain.as_deref();
    json!({
        "id": account.id,
        "called": account.name.as_deref().or(site).unwrap_or("an account without a site"),
        "plan": account.plan.as_str(),
        "site": site.map(|name| app.addresses.page(name, domain::pages::INDEX)),
        "since": account.added_at.format("%-d %B %Y").to_string(),
    })
}

/// Makes another account of the visitor the current one.
pub(in crate::signin) async fn switch(
    State(app): State<App>,
    _: SameOrigin,
    SignedIn { session, token_hash }: SignedIn,
    form: Bytes,
) -> Result<Response, Problem> {
    let requested = form_values(&form, "account").first().and_then(|id| id.parse().ok());
    let mut conn = store::acquire(&app.db).await?;
    if let Some(account_id) = requested
        && sessions::update_account(&mut conn, session.id, account_id).await?
    {
        app.credentials.invalidate(&[token_hash]);
        return Ok(redirect("/account"));
    }
    Ok(app.signin.templates.notice(&Notice {
        status: StatusCode::NOT_FOUND,
        title: "No such account",
        text: "You have no such account. Nothing was changed.",
        link: Some(("/account", "Go to your account")),
    }))
}

/// Creates a first account for a visitor without a trial. Does nothing if there is an account already.
pub(in crate::signin) async fn create(
    State(app): State<App>,
    _: SameOrigin,
    SignedIn { session, token_hash }: SignedIn,
) -> Result<Response, Problem> {
    let mut tx = store::begin(&app.db).await?;
    identities::lock_identity(&mut tx, session.identity_id).await?;
    if identities::list_accounts(&mut tx, session.identity_id).await?.is_empty() {
        let host = insert_account(&app, &mut tx, &session).await?;
        app.commit(tx, vec![Change::Host { host }]).await?;
        app.credentials.invalidate(&[token_hash]);
    }
    Ok(redirect("/account"))
}

/// Inserts a claimed account with its initial subdomain and returns the subdomain's name.
async fn insert_account(app: &App, conn: &mut Conn, session: &Session) -> Result<String, Problem> {
    let now = app.clock.now();
    let account_id = app.rng.uuid_v7(now);
    claims::insert_claimed(conn, account_id, now).await?;
    identities::insert_account(conn, account_id, session.identity_id, None, now).await?;
    sessions::update_account(conn, session.id, account_id).await?;
    initial_subdomain::insert(app, conn, account_id, now).await
}

pub(in crate::signin) async fn sign_out(
    State(app): State<App>,
    _: SameOrigin,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    session::end(&app, &headers).await
}
