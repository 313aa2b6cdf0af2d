//! `/api/auth/oauth/{provider}`: redirects the visitor to a provider. The secrets of the attempt are stored, encrypted,
//! until it expires; their key is the hash of `state` and of a cookie of this browser.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use chrono::TimeDelta;
use domain::encryption::NONCE_BYTES;
use domain::sign_ins::STATE_PURPOSE;
use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use store::sign_ins::{self, NewSignIn};
use web::{ClientIp, Code, Path, Problem, Query};

use crate::App;
use crate::signin::cookie::Cookie;
use crate::signin::providers::{FlowSecrets, ProviderError};
use crate::signin::return_to::ReturnQuery;
use crate::signin::templates::redirect;
use crate::signin::token;

/// Every new attempt also deletes expired ones, at most this many.
const EXPIRED_BATCH: i64 = 100;
const HOUR: Duration = Duration::from_secs(3_600);

/// The stored state of a sign-in between the redirect to the provider and the callback.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::signin) struct SignInState {
    nonce: String,
    pkce_verifier: String,
    pub(in crate::signin) return_to: String,
    /// Whether the provider must have asked for the credentials. Absent in attempts of earlier releases.
    #[serde(default)]
    again: bool,
}

impl SignInState {
    fn seal(&self, app: &App) -> Result<Vec<u8>, Problem> {
        let text = serde_json::to_vec(self).map_err(|error| unreadable(&error))?;
        Ok(app.master_key.seal(STATE_PURPOSE, app.rng.bytes::<NONCE_BYTES>(), &text))
    }

    pub(in crate::signin) fn open(app: &App, sealed: &[u8]) -> Result<Self, Problem> {
        let text = app.master_key.open(STATE_PURPOSE, sealed)?;
        serde_json::from_slice(&text).map_err(|error| unreadable(&error))
    }

    /// Returns the secrets of the attempt; `state` comes from the callback.
    pub(in crate::signin) fn secrets(&self, app: &App, state: String) -> FlowSecrets {
        FlowSecrets {
            state,
            nonce: self.nonce.clone(),
            pkce_verifier: self.pkce_verifier.clone(),
            fresh_for: fresh_for(app, self.again),
        }
    }
}

fn fresh_for(app: &App, again: bool) -> Option<Duration> {
    again.then_some(app.signin.config.fresh_for)
}

pub(in crate::signin) async fn begin(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<ReturnQuery>,
    ip: ClientIp,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let provider = app.signin.providers.find(&name)?;
    check_rate(&app, ip).await?;
    let secrets = FlowSecrets::new(&app.rng, fresh_for(&app, query.again));
    let authorize_url = provider.authorize(&secrets).await.map_err(|error| unreachable(&name, &error))?;

    let cookies = app.signin.cookies;
    // All tabs of a browser share one cookie.
    let browser = cookies.read(Cookie::Browser, &headers).map(str::to_owned);
    let browser = browser.unwrap_or_else(|| token::generate(&app.rng));
    let ttl = TimeDelta::from_std(app.signin.config.attempt_ttl).unwrap_or(TimeDelta::MAX);
    let now = app.clock.now();
    let state = SignInState {
        nonce: secrets.nonce,
        pkce_verifier: secrets.pkce_verifier,
        return_to: query.path().to_owned(),
        again: query.again,
    };
    let sign_in = NewSignIn {
        state_hash: token::hash(&secrets.state),
        browser_hash: token::hash(&browser),
        provider: &name,
        sealed: &state.seal(&app)?,
        expires_at: now + ttl,
    };
    let mut conn = store::acquire(&app.db).await?;
    sign_ins::delete_expired(&mut conn, now, EXPIRED_BATCH).await?;
    sign_ins::insert_sign_in(&mut conn, &sign_in).await?;
    let mut response = redirect(authorize_url.as_str());
    response.headers_mut().append(header::SET_COOKIE, cookies.set(Cookie::Browser, &browser, ttl));
    Ok(response)
}

async fn check_rate(app: &App, ip: ClientIp) -> Result<(), Problem> {
    let rule = cache::Rule { limit: app.signin.config.max_attempts_per_hour, window: HOUR };
    let decision = app.limiter.hit(&format!("signin:{}", ip.network()), &[rule], app.clock.now()).await;
    if decision.allowed {
        return Ok(());
    }
    let detail = "too many sign-ins from this IP address";
    Err(Problem::new(Code::RateLimited, detail).retry_after(decision.retry_after.as_secs().max(1)))
}

fn unreadable(error: &serde_json::Error) -> Problem {
    tracing::error!(%error, "failed to encode or decode the state of a sign-in");
    Problem::new(Code::Internal, "an internal error; try again in a few seconds")
}

fn unreachable(provider: &str, error: &ProviderError) -> Problem {
    tracing::warn!(provider, %error, "failed to start a sign-in at a provider");
    Problem::new(Code::Unavailable, format!("{provider} can't be reached right now")).retry_after(10)
}
