//! Trials: a working key in one call, without an account.

use std::time::Duration;

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::base62;
use domain::keys::{self, KeyKind};
use domain::plans::{Limits, Plan};
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use store::accounts::NewTrial;
use store::keys::NewKey;
use web::{ClientIp, Created, Envelope, Problem, Resource, WithHeaders};

use crate::admission::rate_limit_headers::Policy;
use crate::next_steps::first_steps;
use crate::rate_limit;
use crate::{App, initial_subdomain};

pub(super) fn resource() -> Resource<App> {
    Resource::new("trial").post(
        "/api/trial",
        create,
        "Create a trial account and its key, without signing up",
    )
}

/// Length of the token in a claim link.
pub(super) const CLAIM_DIGITS: usize = 40;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TrialView {
    /// The key's secret. It is shown only once.
    key: String,
    /// What the trial allows; -1 is unlimited.
    limits: Limits,
    /// Features that the trial does not include.
    restrictions: &'static [&'static str],
    /// Open this URL in a browser and sign in to keep the trial's data.
    claim_url: String,
    /// An unclaimed trial is deleted after this time.
    claim_deadline: DateTime<Utc>,
}

async fn create(State(app): State<App>, ip: ClientIp) -> WithHeaders<Result<Created<TrialView>, Problem>> {
    let of = |limit, hours| cache::Rule { limit, window: Duration::from_hours(hours) };
    let policies = [
        Policy { name: "hour", rule: of(app.trial.max_per_hour, 1) },
        Policy { name: "day", rule: of(app.trial.max_per_day, 24) },
    ];
    let caller = format!("trial:{}", ip.network());
    let detail = "this IP address has reached its limit of trials for now";
    let checked = rate_limit::check(&app, &caller, &policies, detail).await;
    let created = match checked.result {
        Ok(()) => create_trial(&app).await,
        Err(refused) => Err(refused),
    };
    WithHeaders(checked.headers, created)
}

async fn create_trial(app: &App) -> Result<Created<TrialView>, Problem> {
    let now = app.clock.now();
    let key = keys::make(KeyKind::Trial, &app.rng.bytes());
    let claim_token = base62::encode(&app.rng.bytes::<32>(), CLAIM_DIGITS);
    let trial = NewTrial {
        id: app.rng.uuid_v7(now),
        claim_token_hash: Sha256::digest(claim_token.as_bytes()).into(),
        claim_deadline: now + app.trial.claim_window,
        created_at: now,
    };
    let new_key = NewKey {
        id: app.rng.uuid_v7(now),
        secret: app.credentials.secret(KeyKind::Trial, &key),
        label: "trial".to_owned(),
        scopes: ScopeSet::FULL,
        restrictions: Restrictions::default(),
        expires_at: None,
        parent_id: None,
        created_at: now,
    };
    let mut tx = store::begin(&app.db).await?;
    store::accounts::insert_trial(&mut tx, &trial).await?;
    store::keys::insert_key(&mut tx, trial.id, &new_key).await?;
    let name = initial_subdomain::insert(app, &mut tx, trial.id, now).await?;
    let change = contract::Change::Host { host: name.clone() };
    app.commit(tx, vec![change]).await?;

    let view = TrialView {
        key,
        limits: Plan::Free.limits(),
        restrictions: Plan::Free.restrictions(),
        claim_url: app.addresses.claim(&claim_token),
        claim_deadline: trial.claim_deadline,
    };
    Ok(Created(Envelope::new(view, None)).with_next(first_steps(name)))
}
