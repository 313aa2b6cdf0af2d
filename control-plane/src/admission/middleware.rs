//! The middleware that admits each call of the API.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use web::ClientIp;

use super::CallPermit;
use super::rate::Hit;
use crate::authentication::Authenticated;
use crate::{App, authentication, call, compression};

/// Waits for a permit and holds it until the response is written. The permit is also an extension of the request, for a
/// call that goes on after its client has disconnected.
pub(crate) async fn admit(
    State(app): State<App>,
    ip: ClientIp,
    mut request: Request,
    next: Next,
) -> Response {
    if request.extensions().get::<Authenticated>().is_some() {
        // The request that carries this one was admitted, and its permit is an extension of both.
        return next.run(request).await;
    }
    // The handler rejects a caller that is not authenticated and explains why.
    let (parts, body) = request.into_parts();
    let caller = authentication::authenticate(&app, &parts).await.ok();
    if let Some(caller) = &caller {
        call::provide_meta(&parts, caller);
    }
    request = Request::from_parts(parts, body);
    let account_id = caller.map(|caller| caller.account.id);
    let Hit { headers, rejection } = app.calls.hit(account_id, ip);
    if let Some(problem) = rejection {
        return (headers, problem).into_response();
    }
    let permit = match app.calls.acquire(account_id, ip).await {
        Ok(permit) => Arc::new(permit),
        Err(problem) => return problem.into_response(),
    };
    request.extensions_mut().insert(Arc::clone(&permit));
    compression::only_for_reads(&mut request);
    let mut response = hold(next.run(request).await, permit);
    for (name, value) in headers.into_iter().filter_map(|(name, value)| Some((name?, value))) {
        // A handler with a rate limit of its own reports that one.
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

/// Holds the permit until the body is dropped: once the server has taken all of it, or the client has disconnected.
pub(crate) fn hold(response: Response, permit: Arc<CallPermit>) -> Response {
    let hold = move |error| {
        let _permit = &permit;
        error
    };
    response.map(|body| Body::new(body.map_err(hold)))
}
