//! Calls operations in process, through the router that serves HTTP: so authorization, quotas, validation and metrics are
//! those of the API. A second frame around each call would cost it a tenth of its rate.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Response};
use contract::edge;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body::Body as _;
use http_body_util::{BodyExt, Limited};
use serde_json::{Map, Value, json};
use store::credentials::Caller;
use tower::ServiceExt;
use web::{Code, CompletedRequest, MetaSlot, Problem, RequestId};

use crate::admission::CallPermit;
use crate::authentication::Authenticated;
use crate::catalog::RequestParts;
use crate::large_bodies::HandedShare;

/// The largest answer that a call returns.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// What to do about a body that is too large.
const SMALLER: &str = "most operations take a body of 1 MiB, by HTTP, too: send less at a time. Pages take 4 MiB; sites and \
    batches of pages take 160 MiB by HTTP: POST /api/launch or POST /api/pages/batch";

/// Headers of the client's request that a call passes on: who calls, from where, and in which trace.
const PASSED_ON: [HeaderName; 6] = [
    header::AUTHORIZATION,
    header::USER_AGENT,
    HeaderName::from_static(edge::TOKEN),
    HeaderName::from_static(edge::CLIENT_IP),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The API, as a call reaches it.
#[derive(Clone)]
pub(super) struct Gateway {
    /// Without a frame, as each call runs inside the frame of the client's request.
    router: Router,
    count: fn(&CompletedRequest<'_>),
    /// The address of the API.
    base: String,
}

/// The client's request that carries a message.
pub(super) struct Client {
    pub(super) parts: Parts,
    pub(super) caller: Arc<Caller>,
    /// The permit of the request, which is that of its call, too.
    pub(super) permit: Arc<CallPermit>,
    /// The share of a large message, which its call takes over.
    pub(super) share: Option<HandedShare>,
}

/// A call of an operation.
pub(super) struct OperationCall<'a> {
    /// The operation's path, with the names of its parameters.
    pub(super) route: &'a str,
    pub(super) parts: RequestParts,
    /// Whether the operation changes nothing.
    pub(super) is_read: bool,
}

/// The answer to a call.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) is_error: bool,
    /// The body; if it is JSON, an object.
    pub(super) text: String,
    pub(super) is_json: bool,
}

impl Gateway {
    pub(super) fn new(router: Router, count: fn(&CompletedRequest<'_>), base: &str) -> Self {
        Self { router, count, base: base.to_owned() }
    }

    /// Calls an operation for a client.
    pub(super) async fn call(&self, client: &Client, call: OperationCall<'_>) -> Result<Outcome, Problem> {
        let (began, route, is_read) = (Instant::now(), call.route, call.is_read);
        let request = request_of(client, call)?;
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status();
        (self.count)(&CompletedRequest { method: &method, route, status, elapsed: began.elapsed() });
        match Outcome::read(response, &client.parts).await {
            Some(outcome) => Ok(outcome),
            None => self.without_answer(&method, &uri, status, is_read),
        }
    }

    /// The outcome of a call with an answer that can't be passed on. One that was carried out is no error, or the client
    /// would repeat it.
    fn without_answer(
        &self,
        method: &Method,
        uri: &Uri,
        status: StatusCode,
        is_read: bool,
    ) -> Result<Outcome, Problem> {
        let (base, number) = (&self.base, status.as_u16());
        let reason = format!("is longer than {ANSWER_BYTES_MAX} bytes, or broke off");
        if status.is_success() && !is_read {
            let detail = format!("the call was executed with status {number}; its answer {reason}");
            let hint = format!("don't repeat it; read what it made by HTTP, from {base}{}", uri.path());
            return Ok(Outcome::of_value(
                &json!({ "executed": true, "answeredWith": number, "detail": detail, "hint": hint }),
            ));
        }
        let detail = format!("the answer, with status {number}, {reason}");
        Err(Problem::new(Code::PayloadTooLarge, detail)
            .hint(&format!("send it by HTTP: {method} {base}{uri}")))
    }
}

/// Returns the request of a call.
fn request_of(client: &Client, call: OperationCall<'_>) -> Result<Request<Body>, Problem> {
    let outer = &client.parts;
    let refused = |detail: &str| Problem::new(Code::ValidationFailed, detail);
    let uri = Uri::try_from(call.parts.path_and_query)
        .map_err(|_| refused("the arguments of the path and the query are too long"))?;
    let mut request = Request::new(Body::empty());
    let is_post = call.parts.method == Method::POST;
    *request.method_mut() = call.parts.method;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.reserve(PASSED_ON.len() + 3);
    for name in &PASSED_ON {
        if let Some(value) = outer.headers.get(name) {
            headers.insert(name, value.clone());
        }
    }
    // Those of the arguments, such as `If-Match`.
    headers.extend(call.parts.headers);
    // A key among the arguments is meant for this call alone.
    if is_post && !headers.contains_key(&IDEMPOTENCY_KEY) {
        for key in outer.headers.get_all(&IDEMPOTENCY_KEY) {
            headers.append(IDEMPOTENCY_KEY, key.clone());
        }
    }
    if let Some(body) = call.parts.body {
        let body = body.to_string();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, body.len().into());
        *request.body_mut() = Body::from(body);
    }
    let extensions = request.extensions_mut();
    extensions.insert(Authenticated(Arc::clone(&client.caller)));
    extensions.insert(Arc::clone(&client.permit));
    if let Some(share) = &client.share {
        extensions.insert(share.clone());
    }
    if let Some(id) = outer.extensions.get::<RequestId>() {
        extensions.insert(id.clone());
    }
    if let Some(meta) = outer.extensions.get::<MetaSlot>() {
        extensions.insert(meta.clone());
    }
    if let Some(connection) = outer.extensions.get::<ConnectInfo<SocketAddr>>() {
        extensions.insert(*connection);
    }
    Ok(request)
}

impl Outcome {
    /// Reads a response; `None` if its body is too long or breaks off.
    async fn read(response: Response, outer: &Parts) -> Option<Self> {
        let is_error = !response.status().is_success();
        let is_problem = response.extensions().get::<Problem>().is_some();
        let kind = response.headers().get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
        let is_json = is_problem || kind.starts_with(b"application/json");
        let body = response.into_body();
        let is_short = body.size_hint().upper().is_some_and(|bytes| bytes <= ANSWER_BYTES_MAX as u64);
        let body = match is_short {
            true => body.collect().await.ok()?,
            false => Limited::new(body, ANSWER_BYTES_MAX).collect().await.ok()?,
        };
        let text = String::from_utf8(body.to_bytes().into())
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let text = if is_problem { complete(&text, outer) } else { text };
        Some(Self { is_error, text, is_json })
    }

    /// The outcome of a call that the API never saw.
    pub(super) async fn of_problem(problem: Problem, outer: &Parts) -> Self {
        let outcome = Self::read(problem.into_response(), outer).await;
        outcome.unwrap_or(Self { is_error: true, text: String::new(), is_json: false })
    }

    /// The outcome of a tool that is no operation.
    pub(super) fn of_value(value: &Value) -> Self {
        Self { is_error: false, text: value.to_string(), is_json: true }
    }
}

/// Adds to a problem what the frame adds to one that is sent by HTTP.
fn complete(problem: &str, outer: &Parts) -> String {
    let mut members: Map<String, Value> = serde_json::from_str(problem).unwrap_or_default();
    let id = outer.extensions.get::<RequestId>().map(|id| Arc::clone(&id.0)).unwrap_or_default();
    members.insert("requestId".to_owned(), json!(&*id));
    if members.get("status") == Some(&json!(StatusCode::PAYLOAD_TOO_LARGE.as_u16())) {
        members.entry("hint").or_insert_with(|| json!(SMALLER));
    }
    if let Some(meta) = outer.extensions.get::<MetaSlot>().and_then(|slot| slot.0.get()) {
        members.insert("_meta".to_owned(), json!(meta(&id)));
    }
    Value::Object(members).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn value_of(outcome: Result<Outcome, Problem>) -> (bool, Value) {
        let (outer, ()) = Request::new(()).into_parts();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(problem) => Outcome::of_problem(problem, &outer).await,
        };
        (outcome.is_error, serde_json::from_str(&outcome.text).unwrap())
    }

    #[tokio::test]
    async fn an_answer_that_is_too_large_or_breaks_off_is_none() {
        let (outer, ()) = Request::new(()).into_parts();
        let large = "x".repeat(ANSWER_BYTES_MAX + 1).into_response();
        assert!(Outcome::read(large, &outer).await.is_none());
        let chunks = [Ok("x"), Err(std::io::Error::other("gone"))];
        let broken = Body::from_stream(futures::stream::iter(chunks)).into_response();
        assert!(Outcome::read(broken, &outer).await.is_none());
        let fits = "x".repeat(ANSWER_BYTES_MAX).into_response();
        assert_eq!(Outcome::read(fits, &outer).await.unwrap().text.len(), ANSWER_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_write_without_its_answer_says_that_it_was_executed() {
        let gateway = Gateway::new(Router::new(), |_| {}, "https://app.example.com");
        let uri = Uri::from_static("/api/pages?limit=3");
        let without = async |method: Method, status: u16, is_read: bool| {
            let status = StatusCode::from_u16(status).unwrap();
            value_of(gateway.without_answer(&method, &uri, status, is_read)).await
        };
        let (is_error, written) = without(Method::POST, 201, false).await;
        assert_eq!(
            (is_error, &written["executed"], &written["answeredWith"]),
            (false, &json!(true), &json!(201))
        );
        let detail = written["detail"].as_str().unwrap();
        assert!(detail.contains("was executed with status 201"), "{detail}");
        assert!(
            written["hint"].as_str().unwrap().contains("from https://app.example.com/api/pages"),
            "{written}"
        );
        for (method, status, is_read) in [(Method::GET, 200, true), (Method::POST, 400, false)] {
            let (is_error, problem) = without(method.clone(), status, is_read).await;
            assert_eq!((is_error, &problem["code"]), (true, &json!("payload_too_large")));
            let hint = format!("send it by HTTP: {method} https://app.example.com/api/pages?limit=3");
            assert_eq!(problem["hint"], hint);
            assert!(problem["detail"].as_str().unwrap().contains(&status.to_string()), "{problem}");
        }
    }
}
