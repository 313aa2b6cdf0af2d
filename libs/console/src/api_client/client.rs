//! Sends a call to the API's router.

use std::time::Instant;

use axum::Router;
use axum::body::Body;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Collected, Limited};
use tower::ServiceExt;
use web::{CompletedRequest, MetaSlot};

use super::{Answer, Call, Refusal};
use crate::viewer::Viewer;

/// The largest answer that a screen reads.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// The API, as screens call it.
#[derive(Clone)]
pub(crate) struct ApiClient {
    /// Without a frame: each call runs inside the frame of the page's request.
    router: Router,
    count: fn(&CompletedRequest<'_>),
    /// The `Origin` of the console's pages.
    origin: Option<HeaderValue>,
}

impl ApiClient {
    pub(crate) fn new(router: Router, count: fn(&CompletedRequest<'_>), base: &str) -> Self {
        Self { router, count, origin: HeaderValue::from_str(base).ok() }
    }

    /// Calls an operation with the viewer's session.
    pub(crate) async fn call(&self, viewer: &Viewer, call: Call) -> Answer {
        let (began, operation) = (Instant::now(), call.operation);
        let Some(request) = self.request_of(viewer, call) else {
            return Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                "validation_failed",
                "Not found",
                "The address is too long.",
            ));
        };
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status();
        tracing::debug!(operation = operation.id, status = status.as_u16(), "called an operation");
        (self.count)(&CompletedRequest {
            method: &operation.method,
            route: operation.path,
            status,
            elapsed: began.elapsed(),
        });
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map(Collected::to_bytes).unwrap_or_default();
        if !status.is_success() {
            let refusal = Refusal::read(status, &body, viewer.request_id());
            return Err(refusal.leading_back_to(viewer.page()));
        }
        serde_json::from_slice(&body)
            .map_err(|_| Refusal::read(StatusCode::INTERNAL_SERVER_ERROR, &body, viewer.request_id()))
    }

    fn request_of(&self, viewer: &Viewer, call: Call) -> Option<Request<Body>> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = call.operation.method.clone();
        *request.uri_mut() = Uri::try_from(call.path_and_query()).ok()?;
        let headers = request.headers_mut();
        viewer.pass_on(headers);
        if let Some(origin) = self.origin.as_ref().filter(|_| call.is_query) {
            // A browser sends no `Origin` with the page that asks. The API requires one with each POST of a session.
            headers.insert(header::ORIGIN, origin.clone());
        }
        if let Some(key) = &call.idempotency_key {
            headers.insert("idempotency-key", HeaderValue::from_str(key).ok()?);
        }
        if let Some(body) = call.body {
            let body = body.to_string();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(header::CONTENT_LENGTH, body.len().into());
            *request.body_mut() = Body::from(body);
        }
        let extensions = request.extensions_mut();
        viewer.extend(extensions);
        extensions.insert(MetaSlot::default());
        Some(request)
    }
}
