//! The tower layer that routes a POST with an `Idempotency-Key` through [`IdempotentCall`].

use std::convert::Infallible;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::{MatchedPath, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use axum::routing::future::RouteFuture;
use domain::FieldError;
use domain::encryption::MasterKey;
use domain::idempotency::{CallId, is_key};
use futures::future::{BoxFuture, Either};
use http::Method;
use http::request::Parts;
use store::credentials::Credential;
use store::idempotency::{Attempt, Claim};
use tower::{Layer, Service};
use tracing::Instrument;
use uuid::Uuid;
use web::{Code, Problem};

use super::call::{IdempotentCall, run};
use super::digest::HashingBody;
use crate::admission::CallPermit;
use crate::{App, authentication, call};

const HEADER: &str = "idempotency-key";
/// Routes that ignore the header. The caller of the first has no account yet that could own the stored response. The
/// second is idempotent by itself, and its response holds answers of visitors, which must stay erasable.
const EXEMPT_ROUTES: [&str; 2] = ["/api/trial", "/api/forms/{id}/submissions/{subId}/status"];

/// Wraps routes in an [`IdempotencyService`].
///
/// Not `middleware::from_fn`, because that boxes a future around every call of every route.
#[derive(Clone)]
pub(crate) struct IdempotencyLayer(pub(crate) App);

impl Layer<Route> for IdempotencyLayer {
    type Service = IdempotencyService;

    fn layer(&self, inner: Route) -> IdempotencyService {
        IdempotencyService { app: self.0.clone(), inner }
    }
}

/// Runs a POST with an `Idempotency-Key` once and passes every other request through.
#[derive(Clone)]
pub(crate) struct IdempotencyService {
    app: App,
    inner: Route,
}

impl Service<Request> for IdempotencyService {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<RouteFuture<Infallible>, BoxFuture<'static, Result<Response, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.inner, context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if !applies_to(&request) {
            return Either::Left(self.inner.call(request));
        }
        let Self { app, inner } = self.clone();
        Either::Right(Box::pin(async { Ok(handle(app, request, inner).await) }))
    }
}

fn applies_to(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    request.method() == Method::POST
        && !EXEMPT_ROUTES.contains(&route)
        && request.headers().contains_key(HEADER)
}

/// Claims the key, then runs the call, replays its stored response or returns 409.
async fn handle(app: App, request: Request, route: Route) -> Response {
    let (parts, body) = request.into_parts();
    let Some((account_id, credential)) = credential_of(&parts, &app).await else {
        // The handler rejects this caller and explains why.
        return run(route, Request::from_parts(parts, body)).await;
    };
    let key = match key_of(&parts) {
        Ok(key) => key,
        Err(problem) => return problem.into_response(),
    };
    let id = app.rng.uuid_v7(app.clock.now());
    let call_under = |master_key: &MasterKey| {
        let name = CallId::new(master_key, &credential, parts.uri.path(), key);
        let attempt = Attempt { fingerprint: name.fingerprint(), id };
        IdempotentCall { app: app.clone(), account_id, attempt, name }
    };
    let body = HashingBody::new(body, &parts);
    // During a rotation, a call may have run under an earlier key.
    for master_key in app.master_key.further() {
        let call = call_under(&master_key);
        match call.find_response().await {
            Ok(None) => {}
            Ok(Some(sealed)) => return call.replay(&sealed, &parts, body).await,
            Err(error) => return Problem::from(error).into_response(),
        }
    }
    let call = call_under(&app.master_key);
    match call.claim().await {
        Ok(Claim::Granted) => {
            // In a task of its own, so that the call completes even if the client disconnects.
            let permit = parts.extensions.get::<Arc<CallPermit>>().cloned();
            let execute = async move {
                let response = call.execute(parts, body, route).await;
                drop(permit);
                response
            };
            let executed = tokio::spawn(execute.in_current_span());
            match executed.await.map_err(tokio::task::JoinError::try_into_panic) {
                Ok(response) => response,
                Err(Ok(panic)) => resume_unwind(panic),
                Err(Err(_shutdown)) => Problem::outcome_unknown().into_response(),
            }
        }
        Ok(Claim::InFlight) => {
            let detail = "a call with this Idempotency-Key is still running";
            Problem::new(Code::Conflict, detail).retry_after(1).into_response()
        }
        Ok(Claim::Completed(sealed)) => call.replay(&sealed, &parts, body).await,
        Err(error) => Problem::from(error).into_response(),
    }
}

/// Returns the account and the credential of the call. Returns `None` if the handler will reject the caller, because a
/// stored response must not reach a caller that has lost access. Sets `_meta` for responses that no handler writes.
async fn credential_of(parts: &Parts, app: &App) -> Option<(Uuid, String)> {
    let caller = authentication::authenticate(app, parts).await.ok()?;
    call::provide_meta(parts, &caller);
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
        Problem::validation(vec![FieldError::new("Idempotency-Key", "format", message)])
    })
}
