//! A new claim link for a trial, in case the first one was lost or seen by others. The old link stops working.
//!
//! A claim hands over the whole account, so only the trial's own key may make a link: neither a restricted key nor one
//! that was made with the trial's key.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::base62;
use domain::claims::is_open;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use store::{Conn, claims};
use web::{Code, Problem, Reply};

use crate::App;
use crate::api::keys;
use crate::api::trial::CLAIM_DIGITS;
use crate::call::{Call, scope};
use crate::signin::token;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClaimLinkResponse {
    /// Open this URL in a browser and sign in to keep the trial's data. Earlier links no longer work.
    claim_url: String,
    /// An unclaimed trial is deleted after this time. A new link does not move it.
    claim_deadline: DateTime<Utc>,
}

pub(super) async fn claim_link(
    call: Call<scope::AccountUpdate>,
    State(app): State<App>,
) -> Result<Reply<ClaimLinkResponse>, Problem> {
    let mut tx = keys::begin(&call, &app).await?;
    // The lock waits for a claim that is under way, which would use up the old link.
    let Some(claim_deadline) = claims::lock_deadline(&mut tx, call.account_id).await? else {
        let detail = "this account is claimed, so it needs no claim link";
        return Err(Problem::new(Code::Conflict, detail).hint("its owner signs in at /login"));
    };
    call.check_whole_account(Resource::Account)?;
    if call.scopes() != ScopeSet::FULL {
        return Err(not_its_key().with("requiredScope", json!("*")));
    }
    if *call.restrictions() != Restrictions::default() {
        return Err(not_its_key());
    }
    if !is_open(call.now, Some(claim_deadline)) {
        let detail = "the time to claim this trial is over; it is deleted with all its data";
        return Err(Problem::new(Code::Conflict, detail).hint("make a new trial: POST /api/trial"));
    }
    if !is_trials_own(&call, &mut tx).await? {
        return Err(not_its_key());
    }
    let claim_token = base62::encode(&app.rng.bytes::<32>(), CLAIM_DIGITS);
    claims::update_token(&mut tx, call.account_id, &token::hash(&claim_token)).await?;
    call.commit(&app, tx, vec![]).await?;
    let claim_url = app.addresses.claim(&claim_token);
    Ok(call.reply(ClaimLinkResponse { claim_url, claim_deadline }))
}

async fn is_trials_own<S>(call: &Call<S>, conn: &mut Conn) -> Result<bool, Problem> {
    let Some(key_id) = call.caller.key_id() else { return Ok(false) };
    Ok(store::keys::has_no_parent(conn, call.account_id, key_id).await?)
}

fn not_its_key() -> Problem {
    let detail = "a claim link gives away the whole account, so only the key that POST /api/trial returned can make one";
    Problem::new(Code::InsufficientScope, detail)
        .hint("use the trial's own key, or the link that POST /api/trial returned with it")
}
