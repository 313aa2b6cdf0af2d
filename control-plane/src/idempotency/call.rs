//! One attempt of a call under an `Idempotency-Key`: its claim, its execution and its stored response.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use domain::idempotency::CallId;
use futures::FutureExt;
use http::StatusCode;
use http::request::Parts;
use store::idempotency::{Attempt, Claim};
use tokio::time::Instant;
use tower::ServiceExt;
use uuid::Uuid;
use web::{Code, Problem, RequestId};

use super::digest::HashingBody;
use super::stored_response::StoredResponse;
use crate::App;

/// Calls the route.
pub(super) async fn run(route: Route, request: Request) -> Response {
    match route.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A call that runs at most once per key.
pub(super) struct IdempotentCall {
    pub(super) app: App,
    pub(super) account_id: Uuid,
    pub(super) attempt: Attempt,
    pub(super) name: CallId,
}

impl IdempotentCall {
    /// Leases the key's row, unless another attempt holds it or a response is stored.
    pub(super) async fn claim(&self) -> Result<Claim, store::Error> {
        let (now, config) = (self.app.clock.now(), &self.app.idempotency);
        let (leased_until, answered_after) = (now + config.lease_ttl, now - config.retention);
        let mut conn = store::acquire(&self.app.db).await?;
        let (account_id, attempt) = (self.account_id, self.attempt);
        store::idempotency::claim(&mut conn, account_id, attempt, now, leased_until, answered_after).await
    }

    /// Returns the stored response without claiming the call.
    pub(super) async fn find_response(&self) -> Result<Option<Vec<u8>>, store::Error> {
        let answered_after = self.app.clock.now() - self.app.idempotency.retention;
        let mut conn = store::acquire(&self.app.db).await?;
        let fingerprint = &self.attempt.fingerprint;
        store::idempotency::find_response(&mut conn, self.account_id, fingerprint, answered_after).await
    }

    /// Runs the handler under the lease and stores its response, or releases the lease if the response is not final.
    pub(super) async fn execute(self, parts: Parts, body: HashingBody, route: Route) -> Response {
        let request = Request::from_parts(parts, body.stream());
        let result = tokio::select! {
            result = AssertUnwindSafe(run(route, request)).catch_unwind() => result,
            never = self.renew_lease() => match never {},
        };
        let response = match result {
            Ok(response) => response,
            Err(panic) => {
                self.release().await;
                resume_unwind(panic)
            }
        };
        if !is_final(response.status()) {
            self.release().await;
            return response;
        }
        let Some(digest) = body.finish().await else {
            // The handler left so much of the body unread that a repetition could not be compared.
            self.release().await;
            return response;
        };
        match StoredResponse::read(response, digest).await {
            Ok((stored, response)) => {
                self.store(&stored).await;
                response
            }
            Err(response) => {
                self.release().await;
                response
            }
        }
    }

    /// Renews the lease for as long as this future is polled.
    async fn renew_lease(&self) -> Infallible {
        let lease = self.app.idempotency.lease_ttl;
        let period = (lease / 3).max(Duration::from_millis(100));
        let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
        loop {
            ticks.tick().await;
            let renewed = async {
                let mut conn = store::acquire(&self.app.db).await?;
                let until = self.app.clock.now() + lease;
                store::idempotency::renew(&mut conn, self.account_id, self.attempt, until).await
            };
            let renewed: Result<bool, store::Error> = renewed.await;
            if !matches!(renewed, Ok(true)) {
                tracing::warn!(?renewed, "lost the lease of an Idempotency-Key; a repetition may run too");
            }
        }
    }

    async fn store(&self, response: &StoredResponse) {
        let stored = async {
            let sealed = self.name.seal(self.app.rng.bytes(), &serde_json::to_vec(response)?);
            let mut conn = store::acquire(&self.app.db).await?;
            store::idempotency::store_response(&mut conn, self.account_id, self.attempt, &sealed).await?;
            anyhow::Ok(())
        };
        if let Err(error) = stored.await {
            tracing::warn!(%error, "failed to store the response of an Idempotency-Key");
        }
    }

    async fn release(&self) {
        let released = async {
            let mut conn = store::acquire(&self.app.db).await?;
            store::idempotency::delete_claim(&mut conn, self.account_id, self.attempt).await
        };
        if let Err(error) = released.await {
            tracing::warn!(%error, "failed to release an Idempotency-Key; retries wait for its lease to expire");
        }
    }

    /// Returns the stored response, or a problem if this request differs from the first one.
    pub(super) async fn replay(&self, sealed: &[u8], parts: &Parts, body: HashingBody) -> Response {
        let opened = self.name.open(sealed).map_err(Problem::from);
        let read = opened.and_then(|text| {
            serde_json::from_slice::<StoredResponse>(&text).map_err(|error| {
                tracing::error!(%error, "a stored response has an unknown format");
                Problem::new(Code::Internal, "the first response to this Idempotency-Key can't be read")
            })
        });
        let stored = match read {
            Ok(stored) => stored,
            Err(problem) => return problem.into_response(),
        };
        if body.digest_up_to(stored.request_bytes()).await.as_ref() != Some(stored.request()) {
            let detail = "this Idempotency-Key was used for a different request to this route";
            return Problem::new(Code::IdempotencyMismatch, detail)
                .hint("use a new key for a new request, and repeat a key only with the same request")
                .into_response();
        }
        let id = parts.extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
        stored.replay(&id)
    }
}

/// Whether a response is stored. Server errors, rate limits and transport errors are not, so that a retry runs the
/// call.
fn is_final(status: StatusCode) -> bool {
    let retryable = [
        StatusCode::UNAUTHORIZED,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    !status.is_server_error() && !retryable.contains(&status)
}
