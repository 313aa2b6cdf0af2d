//! `/account`: shows the visitor's identity and accounts, switches between accounts, creates a first one, and signs out.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use store::identities::{self, OwnAccount};
use store::sessions;
use web::Problem;

use crate::App;
use crate::signin::first_account;
use crate::signin::form::form_values;
use crate::signin::origin::SameOrigin;
use crate::signin::session::{self, SignedIn};
use crate::signin::templates::{Notice, redirect};

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

/// Creates a first account for a visitor who signed in on a claim page and has claimed nothing. Does nothing if there is
/// an account already.
pub(in crate::signin) async fn create(
    State(app): State<App>,
    _: SameOrigin,
    SignedIn { session, token_hash }: SignedIn,
) -> Result<Response, Problem> {
    let mut tx = store::begin(&app.db).await?;
    identities::lock_identity(&mut tx, session.identity_id).await?;
    if identities::list_accounts(&mut tx, session.identity_id).await?.is_empty() {
        let account = first_account::insert(&app, &mut tx, session.identity_id, app.clock.now()).await?;
        sessions::update_account(&mut tx, session.id, account.id).await?;
        app.commit(tx, vec![account.change]).await?;
        app.credentials.invalidate(&[token_hash]);
    }
    Ok(redirect("/account"))
}

pub(in crate::signin) async fn sign_out(
    State(app): State<App>,
    _: SameOrigin,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    session::end(&app, &headers).await
}
