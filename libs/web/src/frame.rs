//! The middleware around every request: request id, span, metrics, and rendering of problems.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use contract::edge;
use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use serde_json::json;
use tracing::{Instrument, Span};

use crate::drain_body::drain_on_drop;
use crate::reply::NextCursor;
use crate::{Code, Meta, Problem};

/// Callbacks of a service for [`frame`].
#[derive(Clone)]
pub struct Frame {
    /// Creates a request id.
    pub new_request_id: Arc<dyn Fn() -> String + Send + Sync>,
    /// Attaches the span to the trace that the headers name.
    pub continue_trace: fn(&Span, &HeaderMap),
    /// Records metrics of a completed request.
    pub count: fn(&CompletedRequest<'_>),
}

/// A completed request for metrics. Holds only labels of low cardinality and no personal data.
#[derive(Debug)]
pub struct CompletedRequest<'a> {
    pub method: &'a Method,
    /// The route pattern with parameter names; empty if no route matched.
    pub route: &'a str,
    pub status: StatusCode,
    /// Time from the request's head to the response's.
    pub elapsed: Duration,
}

/// The request's id, also in its `X-Request-Id` header.
#[derive(Debug, Clone)]
pub struct RequestId(pub Arc<str>);

/// A slot for the writer of `_meta`: an authenticated call fills it, so that a problem can carry `_meta` too.
#[derive(Clone, Default)]
pub struct MetaSlot(pub Arc<OnceLock<WriteMeta>>);

/// Writes the `_meta` of a response, given the request's id.
pub type WriteMeta = Box<dyn Fn(&str) -> Meta + Send + Sync>;

/// Middleware: assigns a request id and a span, renders panics, wrong methods and problems as problem documents,
/// drains rejected bodies, and sets the request id on every response.
pub async fn frame(State(frame): State<Frame>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id: Arc<str> = match incoming_request_id(request.headers()) {
        Some(kept) => kept.into(),
        None => (frame.new_request_id)().into(),
    };
    let meta = MetaSlot::default();
    let uri = request.uri().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("", MatchedPath::as_str);
    let method = request.method().clone();
    let span = tracing::info_span!(
        "request",
        http.request.method = method.as_str(),
        http.route = route,
        request.id = &*id,
        http.response.status_code = tracing::field::Empty,
    );
    (frame.continue_trace)(&span, request.headers());
    let refusal_headers = RefusalHeaders::of(request.headers());
    request.extensions_mut().insert(RequestId(id.clone()));
    request.extensions_mut().insert(meta.clone());
    let (parts, body) = request.into_parts();
    let body = drain_on_drop(body, &parts.headers);
    let request = Request::from_parts(parts, body);

    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(span.clone()).await;
    let mut response = answered.unwrap_or_else(|_| {
        tracing::error!(parent: &span, "a handler panicked");
        Problem::new(Code::Internal, "an internal error occurred; try again in a few seconds").into_response()
    });
    if response.status() == StatusCode::METHOD_NOT_ALLOWED && response.extensions().get::<Problem>().is_none()
    {
        let problem = wrong_method(response.headers());
        response.extensions_mut().insert(problem);
    }
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let meta = meta.0.get().map(|meta| ("_meta", json!(meta(&id))));
        let mut rendered = problem.render([("requestId", json!(&*id))].into_iter().chain(meta));
        for (name, value) in response.headers() {
            rendered.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
        rendered.headers_mut().remove("content-length");
        refusal_headers.add_to(&mut rendered);
        response = rendered;
    }
    if let Some(NextCursor(cursor)) = response.extensions_mut().remove()
        && let Ok(link) = HeaderValue::from_str(&next_link(&uri, &cursor))
    {
        response.headers_mut().append(header::LINK, link);
    }
    let status = response.status();
    (frame.count)(&CompletedRequest { method: &method, route, status, elapsed: began.elapsed() });
    span.record("http.response.status_code", status.as_u16());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(edge::REQUEST_ID, value);
    }
    response
}

/// What the headers of a refusal depend on.
struct RefusalHeaders {
    is_compressed: bool,
}

impl RefusalHeaders {
    fn of(request: &HeaderMap) -> Self {
        Self { is_compressed: request.contains_key(header::CONTENT_ENCODING) }
    }

    /// Adds to a 415 the codings that are accepted (RFC 9110, 15.5.16).
    fn add_to(&self, response: &mut Response) {
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && self.is_compressed {
            let codings = HeaderValue::from_static("identity");
            response.headers_mut().entry(header::ACCEPT_ENCODING).or_insert(codings);
        }
    }
}

/// Returns the `Link` header of the next page (RFC 8288): the same URL with another cursor.
fn next_link(uri: &Uri, cursor: &str) -> String {
    let asked = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(asked.filter(|(name, _)| name != "cursor"))
        .append_pair("cursor", cursor)
        .finish();
    format!("<{}?{query}>; rel=\"next\"", uri.path())
}

fn wrong_method(headers: &HeaderMap) -> Problem {
    let allowed = headers.get("allow").and_then(|value| value.to_str().ok()).unwrap_or("another method");
    Problem::new(Code::MethodNotAllowed, format!("this path allows {allowed}"))
}

/// Returns the request id of the client, if it is valid. It appears in logs.
pub fn incoming_request_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(edge::REQUEST_ID)?.to_str().ok().filter(|id| is_valid_request_id(id.as_bytes()))
}

/// Returns whether `id` is 8 to 64 letters, digits, `-` or `_`.
pub fn is_valid_request_id(id: &[u8]) -> bool {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (8..=64).contains(&id.len()) && id.iter().all(is_of_word)
}
