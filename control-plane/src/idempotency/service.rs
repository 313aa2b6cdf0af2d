//! `Idempotency-Key`: a POST that is sent again is answered again, not carried out again.
//!
//! A call is known by its account, credential, route and key. Whoever comes first leases its row, carries it out and
//! keeps the answer there, sealed under the caller's key; others are told to come back while that goes on, and get
//! the same answer after. The request's body is digested as it passes, so a route's own body limit stays the one that
//! counts and nothing is held in memory for this.
//!
//! What this can't do: if the process is killed between the handler's commit and the keeping of its answer, the next
//! attempt carries the call out once more. The same holds for answers that aren't kept (5xx, and those that say "not
//! now" or concern the transport), and there that is the point.

mod answer;
mod digest;

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use axum::routing::future::RouteFuture;
use domain::Complaint;
use domain::idempotency::{CallName, is_key};
use futures::FutureExt;
use futures::future::{BoxFuture, Either};
use http::request::Parts;
use http::{Method, StatusCode};
use store::callers::Credential;
use store::idempotency::{Attempt, Claim};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};
use tracing::Instrument;
use uuid::Uuid;
use web::{Code, Problem, RequestId};

use crate::{App, call, callers};
use answer::Answer;
use digest::Digested;

const HEADER: &str = "idempotency-key";
/// Of the first, whoever calls it has no account yet that could own what is kept. The second does the same however often
/// it is called, and what is kept of it would be answers that somebody may want forgotten.
const NEVER_ON: [&str; 2] = ["/api/trial", "/api/forms/{id}/submissions/{subId}/status"];

/// The layer: carries a POST with an `Idempotency-Key` out once.
///
/// Written out rather than by `middleware::from_fn`, which boxes a future around every call of every route.
#[derive(Clone)]
pub(crate) struct OnceLayer(pub(crate) App);

impl Layer<Route> for OnceLayer {
    type Service = Gate;

    fn layer(&self, inner: Route) -> Gate {
        Gate { app: self.0.clone(), inner }
    }
}

/// A route with the layer around it.
#[derive(Clone)]
pub(crate) struct Gate {
    app: App,
    inner: Route,
}

impl Service<Request> for Gate {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<RouteFuture<Infallible>, BoxFuture<'static, Result<Response, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.inner, context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if !is_concerned(&request) {
            return Either::Left(self.inner.call(request));
        }
        let Self { app, inner } = self.clone();
        Either::Right(Box::pin(async { Ok(carry_out_once(app, request, inner).await) }))
    }
}

fn is_concerned(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    request.method() == Method::POST && !NEVER_ON.contains(&route) && request.headers().contains_key(HEADER)
}

/// The answer of a route that is called.
async fn run(route: Route, request: Request) -> Response {
    match route.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

async fn carry_out_once(app: App, request: Request, route: Route) -> Response {
    let (parts, body) = request.into_parts();
    let Some((account_id, credential)) = credential_of(&parts, &app).await else {
        // The handler says why.
        return run(route, Request::from_parts(parts, body)).await;
    };
    let key = match key_of(&parts) {
        Ok(key) => key,
        Err(problem) => return problem.into_response(),
    };
    let name = CallName::new(&app.master_key, &credential, parts.uri.path(), key);
    let attempt = Attempt { fingerprint: name.fingerprint(), id: app.rng.uuid_v7(app.clock.now()) };
    let body = Digested::new(body, &parts);
    let call = Once { app, account_id, attempt, name };
    match call.claim().await {
        Ok(Claim::Granted) => {
            // In a task of its own: a caller who hangs up can't leave the call half done, and may ask again.
            let carried_out = tokio::spawn(call.carry_out(parts, body, route).in_current_span());
            match carried_out.await.map_err(tokio::task::JoinError::try_into_panic) {
                Ok(response) => response,
                Err(Ok(panic)) => resume_unwind(panic),
                Err(Err(_shutdown)) => Problem::away(false).into_response(),
            }
        }
        Ok(Claim::InFlight) => {
            let detail = "a call with this Idempotency-Key is being carried out right now";
            Problem::new(Code::Conflict, detail).retry_after(1).into_response()
        }
        Ok(Claim::Answered(sealed)) => call.answer_again(&sealed, &parts, body).await,
        Err(error) => Problem::from(error).into_response(),
    }
}

/// Whose call it is, and what it is made with; none for whoever the handler is going to refuse, who must not learn
/// from a kept answer what they no longer may. Leaves `_meta` for answers that aren't a handler's.
async fn credential_of(parts: &Parts, app: &App) -> Option<(Uuid, String)> {
    let caller = callers::authenticate(app, parts).await.ok()?;
    call::leave_meta(parts, &caller);
    let credential = match caller.credential {
        Credential::Key { id, .. } => format!("key:{id}"),
        Credential::Session { id, .. } => format!("session:{id}"),
    };
    caller.account.suspended_at.is_none().then_some((caller.account.id, credential))
}

fn key_of(parts: &Parts) -> Result<&str, Problem> {
    let mut keys = parts.headers.get_all(HEADER).iter();
    let key = keys.next().filter(|key| is_key(key.as_bytes())).and_then(|key| key.to_str().ok());
    key.filter(|_| keys.next().is_none()).ok_or_else(|| {
        let message = "Idempotency-Key must be one text of 1 to 255 visible ASCII characters";
        Problem::validation(vec![Complaint::new("Idempotency-Key", "format", message)])
    })
}

/// A call that is to be carried out once.
struct Once {
    app: App,
    account_id: Uuid,
    attempt: Attempt,
    name: CallName,
}

impl Once {
    async fn claim(&self) -> Result<Claim, store::Error> {
        let (now, times) = (self.app.clock.now(), &self.app.idempotency);
        let (leased_until, answered_after) = (now + times.lease, now - times.kept_for);
        let mut conn = store::acquire(&self.app.db).await?;
        let (account_id, attempt) = (self.account_id, self.attempt);
        store::idempotency::claim(&mut conn, account_id, attempt, now, leased_until, answered_after).await
    }

    async fn carry_out(self, parts: Parts, body: Digested, route: Route) -> Response {
        let request = Request::from_parts(parts, body.stream());
        let answered = tokio::select! {
            answered = AssertUnwindSafe(run(route, request)).catch_unwind() => answered,
            never = self.stay_in_charge() => match never {},
        };
        let response = match answered {
            Ok(response) => response,
            Err(panic) => {
                self.give_up().await;
                resume_unwind(panic)
            }
        };
        if !is_kept(response.status()) {
            self.give_up().await;
            return response;
        }
        let Some(digest) = body.finish().await else {
            // So much was sent that the handler didn't want to read that it can't be recognised again.
            self.give_up().await;
            return response;
        };
        match Answer::read(response, digest).await {
            Ok((answer, response)) => {
                self.keep(&answer).await;
                response
            }
            Err(response) => {
                self.give_up().await;
                response
            }
        }
    }

    /// Renews the lease for as long as this is polled.
    async fn stay_in_charge(&self) -> Infallible {
        let lease = self.app.idempotency.lease;
        let every = (lease / 3).max(Duration::from_millis(100));
        let mut turns = tokio::time::interval_at(Instant::now() + every, every);
        loop {
            turns.tick().await;
            let renewed = async {
                let mut conn = store::acquire(&self.app.db).await?;
                let until = self.app.clock.now() + lease;
                store::idempotency::renew(&mut conn, self.account_id, self.attempt, until).await
            };
            let renewed: Result<bool, store::Error> = renewed.await;
            if !matches!(renewed, Ok(true)) {
                tracing::warn!(?renewed, "a call under an Idempotency-Key may be begun by another meanwhile");
            }
        }
    }

    async fn keep(&self, answer: &Answer) {
        let kept = async {
            let sealed = self.name.seal(self.app.rng.bytes(), &serde_json::to_vec(answer)?);
            let mut conn = store::acquire(&self.app.db).await?;
            store::idempotency::keep_answer(&mut conn, self.account_id, self.attempt, &sealed).await?;
            anyhow::Ok(())
        };
        if let Err(error) = kept.await {
            tracing::warn!(%error, "an answer could not be kept for its Idempotency-Key");
        }
    }

    async fn give_up(&self) {
        let given_up = async {
            let mut conn = store::acquire(&self.app.db).await?;
            store::idempotency::delete_claim(&mut conn, self.account_id, self.attempt).await
        };
        if let Err(error) = given_up.await {
            tracing::warn!(%error, "a call under an Idempotency-Key can be tried again only after its lease");
        }
    }

    async fn answer_again(&self, sealed: &[u8], parts: &Parts, body: Digested) -> Response {
        let opened = self.name.open(sealed).map_err(Problem::from);
        let read = opened.and_then(|text| {
            serde_json::from_slice::<Answer>(&text).map_err(|error| {
                tracing::error!(%error, "a kept answer is of another version");
                Problem::new(
                    Code::Internal,
                    "the first answer to this Idempotency-Key can't be read any more",
                )
            })
        });
        let answer = match read {
            Ok(answer) => answer,
            Err(problem) => return problem.into_response(),
        };
        if body.digest_up_to(answer.request_bytes()).await.as_ref() != Some(answer.request()) {
            let detail = "this Idempotency-Key was used for another request to this route";
            return Problem::new(Code::IdempotencyMismatch, detail)
                .hint("use a new key for a new request, and the same key only to send the same one again")
                .into_response();
        }
        let id = parts.extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
        answer.give_again(&id)
    }
}

/// Whether an answer is the last word: our own failures, "not now" and what concerns the transport are not.
fn is_kept(status: StatusCode) -> bool {
    let not_the_last_word = [
        StatusCode::UNAUTHORIZED,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    !status.is_server_error() && !not_the_last_word.contains(&status)
}
