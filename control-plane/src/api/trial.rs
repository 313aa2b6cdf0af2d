//! Trials: a working key for nothing, in one call.

use std::time::Duration;

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::keys::{self, KeyKind};
use domain::plans::{Limits, Plan};
use domain::reach::Reach;
use domain::scopes::ScopeSet;
use domain::{base62, subdomains};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use store::accounts::NewTrial;
use store::keys::NewKey;
use store::usage::{self, Counter};
use web::{ClientIp, Code, Created, Envelope, Headed, Problem, Resource};

use crate::App;
use crate::rates::{self, Policy};

/// The endpoints.
pub(super) fn resource() -> Resource<App> {
    Resource::new("trial").post("/api/trial", create, "Get a working key, without signing up")
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TrialView {
    /// The key. It is shown this once.
    key: String,
    /// What the trial allows; -1 is unlimited.
    limits: Limits,
    /// Features the trial leaves out.
    restrictions: &'static [&'static str],
    /// Open this in a browser and sign in to keep everything.
    claim_url: String,
    /// After this an unclaimed trial is deleted.
    claim_deadline: DateTime<Utc>,
}

async fn create(
    State(app): State<App>,
    ClientIp(ip): ClientIp,
) -> Headed<Result<Created<TrialView>, Problem>> {
    let of = |limit, hours| cache::Rule { limit, window: Duration::from_hours(hours) };
    let policies = [
        Policy { name: "hour", rule: of(app.trial.per_hour, 1) },
        Policy { name: "day", rule: of(app.trial.per_day, 24) },
    ];
    let who = format!("trial:{}", network_of(ip));
    let detail = "this address has made as many trials as it may for now";
    let counted = rates::count(&app, &who, &policies, detail).await;
    let made = match counted.outcome {
        Ok(()) => make(&app).await,
        Err(refused) => Err(refused),
    };
    Headed(counted.headers, made)
}

async fn make(app: &App) -> Result<Created<TrialView>, Problem> {
    let now = app.clock.now();
    let key = keys::make(KeyKind::Trial, &app.rng.bytes());
    let claim_token = base62::encode(&app.rng.bytes::<32>(), 40);
    let trial = NewTrial {
        id: app.rng.uuid_v7(now),
        claim_token_hash: Sha256::digest(claim_token.as_bytes()).into(),
        claim_deadline: now + app.trial.claim_window,
        created_at: now,
    };
    let new_key = NewKey {
        id: app.rng.uuid_v7(now),
        secret: app.callers.secret(KeyKind::Trial, &key),
        label: "trial".to_owned(),
        scopes: ScopeSet::FULL,
        reach: Reach::default(),
        expires_at: None,
        parent_id: None,
        created_at: now,
    };
    let limits = Plan::Free.limits();
    let mut tx = store::begin(&app.db).await?;
    store::accounts::insert_trial(&mut tx, &trial).await?;
    store::keys::insert_key(&mut tx, trial.id, &new_key).await?;
    usage::take(&mut tx, trial.id, Counter::Subdomains, limits.subdomains).await?;
    // 2^25 names for each of 1,024 pairs of words: one that is taken is rare enough to ask the caller again.
    let name = subdomains::suggest(app.rng.bytes());
    let named =
        store::subdomains::insert_subdomain(&mut tx, trial.id, app.rng.uuid_v7(now), &name, now).await;
    if named.as_ref().is_err_and(|error| error.violates(store::subdomains::NAME_IS_TAKEN)) {
        return Err(Problem::new(Code::Unavailable, "no free site name was found; try again").retry_after(1));
    }
    named?;
    let change = contract::Change::Host { host: name };
    app.commit(tx, vec![change]).await?;

    let view = TrialView {
        key,
        limits,
        restrictions: Plan::Free.restrictions(),
        claim_url: app.addresses.claim(&claim_token),
        claim_deadline: trial.claim_deadline,
    };
    let page = json!({"slug": "index", "title": "Hello", "html": "<h1>Hello</h1>"});
    Ok(Created(Envelope::new(view, None)).next(
        "publish",
        "pages.create",
        page,
        "Publish a page at your own address",
    ))
}

/// Whom a rate limit counts: an IPv4 address, or the /64 an IPv6 customer is given.
fn network_of(ip: std::net::IpAddr) -> String {
    match ip.to_canonical() {
        std::net::IpAddr::V4(v4) => v4.to_string(),
        std::net::IpAddr::V6(v6) => format!("{:x?}", &v6.segments()[..4]),
    }
}
