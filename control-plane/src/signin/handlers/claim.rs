//! `/claim/{token}`: a trial becomes somebody's for good. Looking at the page changes nothing, as previews of links
//! look at it too; the form on it claims, once.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use domain::claims::is_open;
use http::StatusCode;
use serde_json::json;
use store::Conn;
use store::claims::{self, Trial};
use store::sessions::Session;
use store::{accounts, identities, keys, sessions, subdomains};
use uuid::Uuid;
use web::{Path, Problem};

use super::origin::FromOurPage;
use super::pages::Notice;
use super::session::{SignedIn, Visitor};
use super::{cookie, login, pages, posted};
use crate::App;

/// One that were left out of the page could not be revoked on it.
const ALL_KEYS: i64 = i64::MAX;

/// Why a link can't be used to claim.
enum Spent {
    ByThem,
    BySomebodyElse,
    Expired,
    Unknown,
}

pub(super) async fn show(
    State(app): State<App>,
    Path(token): Path<String>,
    Visitor(session): Visitor,
) -> Result<Response, Problem> {
    let token_hash = cookie::hash(&token);
    let mut conn = store::acquire(&app.db).await?;
    let trial = claims::find_trial(&mut conn, &token_hash).await?;
    let trial = match check(&app, &mut conn, &token_hash, trial, session.as_ref()).await? {
        Ok(trial) => trial,
        Err(spent) => return Ok(spent.page(&app)),
    };
    let site = subdomains::find_subdomain(&mut conn, trial.account_id, None).await?;
    let mut context = json!({
        "site": site.map(|site| app.addresses.page(&site.name, domain::pages::INDEX)),
        "deadline": trial.claim_deadline.map(|at| at.format("%-d %B %Y, %H:%M UTC").to_string()),
    });
    let path = format!("/claim/{token}");
    let Some(session) = session else {
        context["signIn"] = json!(login::path(Some(&path)));
        return Ok(app.signin.pages.show(StatusCode::OK, "claim.html", &context));
    };
    let now = app.clock.now();
    let mut keys = keys::list_keys(&mut conn, trial.account_id, None, ALL_KEYS).await?;
    keys.retain(|key| key.expires_at.is_none_or(|at| at > now));
    let shown = |key: keys::Key| {
        let used = key.last_used_at.map(|at| at.format("%-d %B %Y, %H:%M UTC").to_string());
        json!({ "id": key.id, "prefix": key.shown_prefix, "label": key.label, "lastUsed": used })
    };
    context["claim"] = json!({
        "path": path,
        "as": session.email.or(session.name),
        "keys": keys.into_iter().map(shown).collect::<Vec<_>>(),
    });
    Ok(app.signin.pages.show_form("claim.html", &context))
}

pub(super) async fn claim(
    State(app): State<App>,
    Path(token): Path<String>,
    _: FromOurPage,
    SignedIn { session, token_hash: session_hash }: SignedIn,
    form: Bytes,
) -> Result<Response, Problem> {
    let token_hash = cookie::hash(&token);
    let now = app.clock.now();
    let mut tx = store::begin(&app.db).await?;
    // Before the account, as whoever makes a key does.
    if let Some(trial) = claims::find_trial(&mut tx, &token_hash).await? {
        keys::lock_all(&mut tx, trial.account_id).await?;
    }
    let trial = claims::lock_trial(&mut tx, &token_hash).await?;
    let trial = match check(&app, &mut tx, &token_hash, trial, Some(&session)).await? {
        Ok(trial) => trial,
        Err(spent) => return Ok(spent.page(&app)),
    };
    let account_id = trial.account_id;
    claims::update_claimed(&mut tx, account_id, now).await?;
    identities::insert_account(&mut tx, account_id, session.identity_id, Some(&token_hash), now).await?;
    let unwanted: Vec<Uuid> = posted(&form, "revoke").iter().filter_map(|id| id.parse().ok()).collect();
    keys::revoke_keys(&mut tx, account_id, &unwanted, now).await?;
    sessions::update_account(&mut tx, session.id, account_id).await?;
    // Search engines are let in from now on.
    let changes = accounts::changes_of(&mut tx, account_id).await?;
    app.commit(tx, changes).await?;
    app.callers.forget_account(account_id);
    app.callers.forget(&[session_hash]);
    Ok(pages::go_to("/account"))
}

/// The trial, if it can be claimed now.
async fn check(
    app: &App,
    conn: &mut Conn,
    token_hash: &[u8; 32],
    trial: Option<Trial>,
    session: Option<&Session>,
) -> Result<Result<Trial, Spent>, Problem> {
    if let Some(trial) = trial {
        let open = is_open(app.clock.now(), trial.claim_deadline);
        return Ok(if open { Ok(trial) } else { Err(Spent::Expired) });
    }
    let claimant = claims::find_claimant(conn, token_hash).await?;
    Ok(Err(match claimant {
        Some(identity) if session.is_some_and(|session| session.identity_id == identity) => Spent::ByThem,
        Some(_) => Spent::BySomebodyElse,
        None => Spent::Unknown,
    }))
}

impl Spent {
    fn page(&self, app: &App) -> Response {
        let sign_in = Some(("/login", "Sign in"));
        let (status, title, text, onward) = match self {
            Self::ByThem => {
                let text = "You have claimed this trial; the link can't be used again.";
                (StatusCode::GONE, "This is yours already", text, Some(("/account", "Go to your account")))
            }
            Self::BySomebodyElse => {
                let text =
                    "This link was used, and each works once. If it was you, sign in to see the account.";
                (StatusCode::GONE, "Already claimed", text, sign_in)
            }
            Self::Expired => {
                let text =
                    "The time to claim this trial is over. Unclaimed trials are deleted with all their data.";
                (StatusCode::GONE, "Too late to claim", text, sign_in)
            }
            Self::Unknown => {
                let text = "This link leads to nothing: it is mistyped, or the trial was not claimed in time and is \
                            deleted.";
                (StatusCode::NOT_FOUND, "Nothing to claim", text, sign_in)
            }
        };
        app.signin.pages.notice(&Notice { status, title, text, onward })
    }
}
