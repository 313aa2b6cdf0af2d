//! The way on to the inner services, which believe us and nobody else about who calls.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use contract::edge as headers;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use web::{Code, Problem, RequestId};

use crate::config;
use crate::state::EdgeState;

/// What concerns one connection (RFC 9110, 7.6.1) or has been seen to here, and what only we may say.
const NOT_PASSED_ON: [HeaderName; 17] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    header::FORWARDED,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("baggage"),
    HeaderName::from_static(headers::TOKEN),
    HeaderName::from_static(headers::EVENT_TIME),
];

/// The inner services are near: one that doesn't take a connection by then is away.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// The services behind the edge.
pub(crate) struct Inner {
    client: Client<HttpConnector, Body>,
    control_plane: String,
    collector: String,
    token: HeaderValue,
    /// The head of an answer must have come by then; its body may take longer.
    answer_within: Duration,
    long_answer_within: Duration,
}

impl Inner {
    /// The services at those addresses, reached with that token.
    ///
    /// # Errors
    /// The token can't stand in a header.
    pub(crate) fn new(config: &config::Inner, token: &str) -> anyhow::Result<Self> {
        let mut token = HeaderValue::from_str(token)?;
        token.set_sensitive(true);
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_WITHIN));
        connector.set_nodelay(true);
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector),
            control_plane: config.control_plane.trim_end_matches('/').to_owned(),
            collector: config.collector.trim_end_matches('/').to_owned(),
            token,
            answer_within: config.answer_within,
            long_answer_within: config.long_answer_within,
        })
    }

    fn patience(&self, path: &str) -> Duration {
        let is_long = path.starts_with("/api/deploy/") || path == "/api/pages/batch";
        if is_long { self.long_answer_within } else { self.answer_within }
    }

    async fn pass(&self, to: &str, visitor: Option<IpAddr>, mut request: Request) -> Response {
        let patience = self.patience(request.uri().path());
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let Ok(uri) = format!("{to}{path}").parse::<Uri>() else {
            return Problem::new(Code::NotFound, "this path can't be read").into_response();
        };
        let id = request.extensions().get::<RequestId>().cloned();
        let own = request.headers_mut();
        strip(own);
        own.remove(header::HOST);
        join_cookies(own);
        own.insert(headers::TOKEN, self.token.clone());
        set(own, headers::CLIENT_IP, visitor.map(|ip| ip.to_string()));
        set(own, headers::REQUEST_ID, id.map(|id| id.0.as_ref().to_owned()));
        service::telemetry::inject(own);
        *request.uri_mut() = uri;
        *request.version_mut() = http::Version::HTTP_11;
        let is_safe = request.method().is_safe();
        match tokio::time::timeout(patience, self.client.request(request)).await {
            Ok(Ok(response)) => {
                let mut response = response.map(Body::new);
                strip(response.headers_mut());
                response
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "an inner service gave no answer");
                unavailable(is_safe || error.is_connect()).into_response()
            }
            Err(_elapsed) => {
                tracing::warn!("an inner service gave no answer in time");
                unavailable(is_safe).into_response()
            }
        }
    }
}

/// The problem of a request that got no response from its service.
fn unavailable(nothing_changed: bool) -> Problem {
    if nothing_changed { Problem::nothing_changed() } else { Problem::outcome_unknown() }
}

/// Takes off what must not go further, also what `Connection` names as its own.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let forwarding: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-forwarded-")).cloned().collect();
    for name in NOT_PASSED_ON.iter().chain(&named).chain(&forwarding) {
        headers.remove(name);
    }
}

/// HTTP/2 may send each cookie in a header of its own, HTTP/1.1 may not (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, joined);
    }
}

/// Sets a header of ours, or removes what the visitor put in its place.
fn set(headers: &mut HeaderMap, name: &'static str, value: Option<String>) {
    match value.and_then(|value| HeaderValue::from_str(&value).ok()) {
        Some(value) => drop(headers.insert(name, value)),
        None => drop(headers.remove(name)),
    }
}

pub(crate) async fn to_control_plane(State(edge): State<EdgeState>, request: Request) -> Response {
    let visitor = edge.proxies.visitor(request.headers(), request.extensions());
    edge.inner.pass(&edge.inner.control_plane, visitor, request).await
}

pub(crate) async fn to_collector(State(edge): State<EdgeState>, request: Request) -> Response {
    let visitor = edge.proxies.visitor(request.headers(), request.extensions());
    edge.inner.pass(&edge.inner.collector, visitor, request).await
}
