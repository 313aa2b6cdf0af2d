//! `/api/auth/oauth/{provider}`: somebody is sent out to a provider. What must hold when they come back is
//! remembered for some minutes, by the hash of `state` and of a cookie of this browser.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use chrono::TimeDelta;
use domain::sealing::NONCE_BYTES;
use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use store::sign_ins::{self, NewSignIn};
use web::{ClientIp, Code, Path, Problem, Query};

use super::cookie::{self, Cookie};
use super::login::Onward;
use super::pages;
use super::providers::{Refusal, Secrets};
use crate::App;

/// Sign-ins that nobody came back from are cleared away by those who begin anew, a few at a time.
const CLEARED_AT_ONCE: i64 = 100;
const HOUR: Duration = Duration::from_secs(3_600);

/// What must be known when they come back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    nonce: String,
    pkce_verifier: String,
    /// Where to go then.
    pub(super) return_to: String,
}

impl Kept {
    const PURPOSE: &str = "sign_in";

    fn seal(&self, app: &App) -> Result<Vec<u8>, Problem> {
        let text = serde_json::to_vec(self).map_err(|error| unreadable(&error))?;
        Ok(app.master_key.seal(Self::PURPOSE, app.rng.bytes::<NONCE_BYTES>(), &text))
    }

    pub(super) fn open(app: &App, sealed: &[u8]) -> Result<Self, Problem> {
        let text = app.master_key.open(Self::PURPOSE, sealed)?;
        serde_json::from_slice(&text).map_err(|error| unreadable(&error))
    }

    /// The attempt's secrets, `state` being what they brought back.
    pub(super) fn secrets(&self, state: String) -> Secrets {
        Secrets { state, nonce: self.nonce.clone(), pkce_verifier: self.pkce_verifier.clone() }
    }
}

pub(super) async fn begin(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(onward): Query<Onward>,
    ip: ClientIp,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let provider = app.signin.providers.find(&name)?;
    check_rate(&app, ip).await?;
    let secrets = Secrets::new(&app.rng);
    let way_out = provider.authorize(&secrets).await.map_err(|refusal| unreachable(&name, &refusal))?;

    let cookies = app.signin.cookies;
    // One cookie serves all tabs of a browser.
    let browser = cookies.read(Cookie::Browser, &headers).map(str::to_owned);
    let browser = browser.unwrap_or_else(|| super::token(&app.rng));
    let window = TimeDelta::from_std(app.signin.config.attempt_window).unwrap_or(TimeDelta::MAX);
    let now = app.clock.now();
    let kept = Kept {
        nonce: secrets.nonce,
        pkce_verifier: secrets.pkce_verifier,
        return_to: onward.path().to_owned(),
    };
    let begun = NewSignIn {
        state_hash: cookie::hash(&secrets.state),
        browser_hash: cookie::hash(&browser),
        provider: &name,
        sealed: &kept.seal(&app)?,
        expires_at: now + window,
    };
    let mut conn = store::acquire(&app.db).await?;
    sign_ins::delete_expired(&mut conn, now, CLEARED_AT_ONCE).await?;
    sign_ins::insert_sign_in(&mut conn, &begun).await?;
    let mut response = pages::go_to(way_out.as_str());
    response.headers_mut().append(header::SET_COOKIE, cookies.set(Cookie::Browser, &browser, window));
    Ok(response)
}

async fn check_rate(app: &App, ip: ClientIp) -> Result<(), Problem> {
    let rule = cache::Rule { limit: app.signin.config.attempts_per_hour, window: HOUR };
    let decision = app.limiter.hit(&format!("signin:{}", ip.network()), &[rule], app.clock.now()).await;
    if decision.allowed {
        return Ok(());
    }
    let detail = "this address has begun to sign in as often as it may for now";
    Err(Problem::new(Code::RateLimited, detail).retry_after(decision.retry_after.as_secs().max(1)))
}

fn unreadable(error: &serde_json::Error) -> Problem {
    tracing::error!(%error, "a sign-in that is under way can't be read or written");
    Problem::new(Code::Internal, "this is our mistake, not yours; try again in a few seconds")
}

fn unreachable(provider: &str, refusal: &Refusal) -> Problem {
    tracing::warn!(provider, %refusal, "nobody can be sent to a provider");
    Problem::new(Code::Unavailable, format!("{provider} can't be reached right now")).retry_after(10)
}
