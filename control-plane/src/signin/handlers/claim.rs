//! `/claim/{token}`: makes a trial a permanent account of the visitor. A GET changes nothing, because link previews
//! fetch the page too; its form claims the trial, once.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use domain::Listed;
use domain::claims::is_open;
use domain::sign_ins::HOME;
use http::StatusCode;
use serde_json::json;
use store::Conn;
use store::claims::{self, Trial};
use store::sessions::Session;
use store::{accounts, identities, keys, sessions, subdomains};
use uuid::Uuid;
use web::{Path, Problem};

use crate::App;
use crate::signin::form::form_values;
use crate::signin::origin::SameOrigin;
use crate::signin::return_to::login_path;
use crate::signin::session::{OptionalSession, SignedIn};
use crate::signin::templates::{Notice, redirect};
use crate::signin::token;

/// Keys read at a time. The page lists every key, so that each can be revoked.
const BATCH: i64 = 200;

/// The reason why a link can't be used to claim.
enum Unclaimable {
    ClaimedByVisitor,
    ClaimedByOther,
    Expired,
    Unknown,
}

pub(in crate::signin) async fn show(
    State(app): State<App>,
    Path(claim_token): Path<String>,
    OptionalSession(session): OptionalSession,
) -> Result<Response, Problem> {
    let token_hash = token::hash(&claim_token);
    let mut conn = store::acquire(&app.db).await?;
    let trial = claims::find_trial(&mut conn, &token_hash).await?;
    let trial = match check(&app, &mut conn, &token_hash, trial, session.as_ref()).await? {
        Ok(trial) => trial,
        Err(reason) => return Ok(reason.page(&app)),
    };
    let site = subdomains::find_subdomain(&mut conn, trial.account_id, None).await?;
    let mut context = json!({
        "site": site.map(|site| app.addresses.page(&site.name, domain::pages::INDEX)),
        "deadline": trial.claim_deadline.map(|at| at.format("%-d %B %Y, %H:%M UTC").to_string()),
    });
    let path = format!("/claim/{claim_token}");
    let Some(session) = session else {
        context["signIn"] = json!(login_path(Some(&path)));
        return Ok(app.signin.templates.show(StatusCode::OK, "claim.html", &context));
    };
    let now = app.clock.now();
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let batch = keys::list_keys(&mut conn, trial.account_id, after, false, BATCH).await?;
        after = batch.rows.last().map(Listed::cursor);
        keys.extend(batch.rows.into_iter().filter(|key| key.expires_at.is_none_or(|at| at > now)));
        if !batch.has_more {
            break;
        }
    }
    let key_context = |key: keys::Key| {
        let used = key.last_used_at.map(|at| at.format("%-d %B %Y, %H:%M UTC").to_string());
        json!({ "id": key.id, "prefix": key.shown_prefix, "label": key.label, "lastUsed": used })
    };
    context["claim"] = json!({
        "path": path,
        "as": session.email.or(session.name),
        "keys": keys.into_iter().map(key_context).collect::<Vec<_>>(),
    });
    Ok(app.signin.templates.show_form("claim.html", &context))
}

pub(in crate::signin) async fn claim(
    State(app): State<App>,
    Path(claim_token): Path<String>,
    _: SameOrigin,
    SignedIn { session, token_hash: session_hash }: SignedIn,
    form: Bytes,
) -> Result<Response, Problem> {
    let token_hash = token::hash(&claim_token);
    let now = app.clock.now();
    let mut tx = store::begin(&app.db).await?;
    // Otherwise a sign-in at the same time would find no account and make a first one. A sign-in locks the identity
    // before any account, and nothing that holds an account's locks waits for an identity.
    identities::lock_identity(&mut tx, session.identity_id).await?;
    // Locks the keys before the account, in the same order as key creation.
    if let Some(trial) = claims::find_trial(&mut tx, &token_hash).await? {
        keys::lock_keys(&mut tx, trial.account_id).await?;
    }
    let trial = claims::lock_trial(&mut tx, &token_hash).await?;
    let trial = match check(&app, &mut tx, &token_hash, trial, Some(&session)).await? {
        Ok(trial) => trial,
        Err(reason) => return Ok(reason.page(&app)),
    };
    let account_id = trial.account_id;
    claims::update_claimed(&mut tx, account_id, now).await?;
    identities::insert_account(&mut tx, account_id, session.identity_id, Some(&token_hash), now).await?;
    let revoked: Vec<Uuid> = form_values(&form, "revoke").iter().filter_map(|id| id.parse().ok()).collect();
    keys::revoke_keys(&mut tx, account_id, &revoked, now).await?;
    sessions::update_account(&mut tx, session.id, account_id).await?;
    // The pages become visible to search engines, so the edges must reload them.
    let changes = accounts::list_cached_items(&mut tx, account_id).await?;
    app.commit(tx, changes).await?;
    app.credentials.invalidate_account(account_id);
    app.credentials.invalidate(&[session_hash]);
    Ok(redirect(HOME))
}

/// Returns the trial if it can be claimed now.
async fn check(
    app: &App,
    conn: &mut Conn,
    token_hash: &[u8; 32],
    trial: Option<Trial>,
    session: Option<&Session>,
) -> Result<Result<Trial, Unclaimable>, Problem> {
    if let Some(trial) = trial {
        let open = is_open(app.clock.now(), trial.claim_deadline);
        return Ok(if open { Ok(trial) } else { Err(Unclaimable::Expired) });
    }
    let claimant = claims::find_claimant(conn, token_hash).await?;
    Ok(Err(match claimant {
        Some(identity) if session.is_some_and(|session| session.identity_id == identity) => {
            Unclaimable::ClaimedByVisitor
        }
        Some(_) => Unclaimable::ClaimedByOther,
        None => Unclaimable::Unknown,
    }))
}

impl Unclaimable {
    fn page(&self, app: &App) -> Response {
        let sign_in = Some(("/login", "Sign in"));
        let (status, title, text, link) = match self {
            Self::ClaimedByVisitor => {
                let text = "You have already claimed this trial; the link works only once.";
                (StatusCode::GONE, "This is yours already", text, Some(("/account", "Go to your account")))
            }
            Self::ClaimedByOther => {
                let text = "This link has been used, and each link works only once. If you used it, sign in to see the account.";
                (StatusCode::GONE, "Already claimed", text, sign_in)
            }
            Self::Expired => {
                let text = "This trial has expired. Unclaimed trials are deleted with all their data.";
                (StatusCode::GONE, "Too late to claim", text, sign_in)
            }
            Self::Unknown => {
                let text = "This link is mistyped or was replaced by a newer one, or its trial expired and was deleted.";
                (StatusCode::NOT_FOUND, "Nothing to claim", text, sign_in)
            }
        };
        app.signin.templates.notice(&Notice { status, title, text, link })
    }
}
