//! `/account`: whoever is signed in sees who they are and what is theirs, chooses among several accounts, gets a
//! first one, or signs out.

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

use super::origin::FromOurPage;
use super::pages::{self, Notice};
use super::posted;
use super::session::{self, SignedIn};
use crate::{App, first_site};

pub(super) async fn show(
    State(app): State<App>,
    SignedIn { session, .. }: SignedIn,
) -> Result<Response, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let identity = identities::find_identity(&mut conn, session.identity_id).await?;
    let identity = identity.ok_or_else(|| Problem::not_found("identity"))?;
    let accounts = identities::list_accounts(&mut conn, session.identity_id).await?;
    let (current, others): (Vec<_>, Vec<_>) =
        accounts.iter().partition(|one| Some(one.id) == session.account_id);
    let context = json!({
        "identity": {
            "name": identity.name,
            "email": identity.email,
            "subject": identity.subject,
            "through": identity.issuer.trim_start_matches("https://"),
        },
        "current": current.first().map(|one| shown(&app, one)),
        "others": others.iter().map(|one| shown(&app, one)).collect::<Vec<_>>(),
        "base": app.addresses.base(),
    });
    Ok(app.signin.pages.show_form("account.html", &context))
}

fn shown(app: &App, account: &OwnAccount) -> Value {
    let site = account.subdomain.as_deref();
    json!({
        "id": account.id,
        "called": account.name.as_deref().or(site).unwrap_or("an account without a site"),
        "plan": account.plan.word(),
        "site": site.map(|name| app.addresses.page(name, domain::pages::INDEX)),
        "since": account.added_at.format("%-d %B %Y").to_string(),
    })
}

/// Works on another of one's accounts from now on.
pub(super) async fn switch(
    State(app): State<App>,
    _: FromOurPage,
    SignedIn { session, token_hash }: SignedIn,
    form: Bytes,
) -> Result<Response, Problem> {
    let wanted = posted(&form, "account").first().and_then(|id| id.parse().ok());
    let mut conn = store::acquire(&app.db).await?;
    if let Some(account_id) = wanted
        && sessions::update_account(&mut conn, session.id, account_id).await?
    {
        app.callers.forget(&[token_hash]);
        return Ok(pages::go_to("/account"));
    }
    Ok(app.signin.pages.notice(&Notice {
        status: StatusCode::NOT_FOUND,
        title: "No such account",
        text: "You have no such account. Nothing was changed.",
        onward: Some(("/account", "Go to your account")),
    }))
}

/// A first account for somebody who never had a trial. Asked twice, there is one all the same.
pub(super) async fn create(
    State(app): State<App>,
    _: FromOurPage,
    SignedIn { session, token_hash }: SignedIn,
) -> Result<Response, Problem> {
    let mut tx = store::begin(&app.db).await?;
    identities::lock_identity(&mut tx, session.identity_id).await?;
    if identities::list_accounts(&mut tx, session.identity_id).await?.is_empty() {
        let host = insert_account(&app, &mut tx, &session).await?;
        app.commit(tx, vec![Change::Host { host }]).await?;
        app.callers.forget(&[token_hash]);
    }
    Ok(pages::go_to("/account"))
}

/// A claimed account with a site of its own, for whoever is signed in. Gives the site's name.
async fn insert_account(app: &App, conn: &mut Conn, session: &Session) -> Result<String, Problem> {
    let now = app.clock.now();
    let account_id = app.rng.uuid_v7(now);
    claims::insert_claimed(conn, account_id, now).await?;
    identities::insert_account(conn, account_id, session.identity_id, None, now).await?;
    sessions::update_account(conn, session.id, account_id).await?;
    first_site::insert(app, conn, account_id, now).await
}

pub(super) async fn sign_out(
    State(app): State<App>,
    _: FromOurPage,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    session::end(&app, &headers).await
}
