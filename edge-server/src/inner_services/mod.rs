//! The client of the inner services. It replaces forwarding headers with the edge's own, and authenticates with a token,
//! because the inner services trust the edge alone about the client's address.

mod upstream;
mod upstream_stream;

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use contract::edge;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use web::{Code, Problem, RequestId};

use crate::config;
use upstream::{Connector, Upstream};
use upstream_stream::Answer;

/// Headers that are not forwarded: those of one connection (RFC 9110, 7.6.1), those that the edge has handled, and those
/// that only the edge may set.
const STRIPPED: [HeaderName; 17] = [
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
    HeaderName::from_static(edge::TOKEN),
    HeaderName::from_static(edge::EVENT_TIME),
];

/// How long an unused connection is kept. A service that shuts down asks for the end of each connection in use, and closes
/// others when they were unused for five seconds (`libs/service/docs/0004-drain.md`). So no request meets a connection that is
/// being closed, after which nothing would be known about it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// A client of both services.
pub(crate) struct InnerServices {
    control_plane: InnerService,
    collector: InnerService,
    token: HeaderValue,
    /// Timeout for the head of a response; its body may take longer.
    response_timeout: Duration,
    long_response_timeout: Duration,
}

/// The client of one service, and the URL that requests are sent with.
struct InnerService {
    client: Client<Connector, Body>,
    base_url: String,
}

impl InnerService {
    fn new(key: &str, urls: &str, connect_retry: Duration) -> anyhow::Result<Self> {
        let (upstream, base_url) = Upstream::read(key, urls, connect_retry)?;
        let mut builder = Client::builder(TokioExecutor::new());
        let client = builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_TIMEOUT);
        Ok(Self { client: client.build(Connector::new(upstream)), base_url })
    }

    /// Sends a request; once more if it is a GET or HEAD without a body and effects whose connection ended before the first
    /// byte of the response. No other request is sent twice.
    async fn send(&self, request: Request) -> Result<http::Response<Incoming>, legacy::Error> {
        let is_repeatable = matches!(*request.method(), Method::GET | Method::HEAD) && is_safe(&request);
        if !is_repeatable || !request.body().is_end_stream() {
            return self.client.request(request).await;
        }
        let (head, _empty) = request.into_parts();
        let again = Request::from_parts(head.clone(), Body::empty());
        let mut request = Request::from_parts(head, Body::empty());
        let connection = capture_connection(&mut request);
        match self.client.request(request).await {
            Err(error) if !error.is_connect() && is_unanswered(&connection) => {
                tracing::debug!(%error, "an inner service closed a connection; the request is sent again");
                self.client.request(again).await
            }
            sent => sent,
        }
    }
}

/// Returns whether a request changes nothing, whatever its outcome.
fn is_safe(request: &Request) -> bool {
    let has_effects = |path: &str| edge::PATHS_WITH_EFFECTS.iter().any(|begin| path.starts_with(begin));
    request.method().is_safe() && !has_effects(request.uri().path())
}

/// Returns whether not one byte of the response was read from the connection of a failed request.
fn is_unanswered(connection: &CaptureConnection) -> bool {
    let mut extras = http::Extensions::new();
    if let Some(connected) = &*connection.connection_metadata() {
        connected.get_extras(&mut extras);
    }
    extras.get::<Answer>().is_some_and(|answer| !answer.has_begun())
}

impl InnerServices {
    /// # Errors
    /// The token is not a valid header value, or a URL is wrong.
    pub(crate) fn new(config: &config::Upstreams, token: &str) -> anyhow::Result<Self> {
        let mut token = HeaderValue::from_str(token)?;
        token.set_sensitive(true);
        Ok(Self {
            control_plane: InnerService::new("control_plane", &config.control_plane, config.connect_retry)?,
            collector: InnerService::new("collector", &config.collector, config.connect_retry)?,
            token,
            response_timeout: config.response_timeout,
            long_response_timeout: config.long_response_timeout,
        })
    }

    /// Forwards a request to the control plane.
    pub(crate) async fn control_plane(&self, client: Option<IpAddr>, request: Request) -> Response {
        self.forward(&self.control_plane, client, request).await
    }

    /// Forwards a request to the collector.
    pub(crate) async fn collector(&self, client: Option<IpAddr>, request: Request) -> Response {
        self.forward(&self.collector, client, request).await
    }

    fn timeout_for(&self, path: &str) -> Duration {
        // A browser without scripts posts zips to the console.
        let is_deploy = path.starts_with("/console/sites/") && path.contains("/deploys");
        let is_long = is_deploy
            || path.starts_with("/api/deploy/")
            || ["/api/launch", "/api/mcp", "/api/pages/batch"].contains(&path);
        if is_long { self.long_response_timeout } else { self.response_timeout }
    }

    async fn forward(
        &self,
        service: &InnerService,
        client: Option<IpAddr>,
        mut request: Request,
    ) -> Response {
        let timeout = self.timeout_for(request.uri().path());
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let Ok(uri) = format!("{}{path}", service.base_url).parse::<Uri>() else {
            return Problem::new(Code::NotFound, "this path is not valid").into_response();
        };
        let id = request.extensions().get::<RequestId>().cloned();
        let headers = request.headers_mut();
        strip(headers);
        headers.remove(header::HOST);
        join_cookies(headers);
        headers.insert(edge::TOKEN, self.token.clone());
        set(headers, edge::CLIENT_IP, client.map(|ip| ip.to_string()));
        set(headers, edge::REQUEST_ID, id.map(|id| id.0.as_ref().to_owned()));
        service::telemetry::inject(headers);
        *request.uri_mut() = uri;
        *request.version_mut() = http::Version::HTTP_11;
        let is_safe = is_safe(&request);
        match tokio::time::timeout(timeout, service.send(request)).await {
            Ok(Ok(response)) => {
                let mut response = response.map(Body::new);
                strip(response.headers_mut());
                response
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "an inner service did not respond");
                unavailable(is_safe || error.is_connect()).into_response()
            }
            Err(_elapsed) => {
                tracing::warn!("an inner service did not respond in time");
                unavailable(is_safe).into_response()
            }
        }
    }
}

/// Returns the problem for a request without a response. It says that nothing was changed only if that is certain.
fn unavailable(nothing_changed: bool) -> Problem {
    if nothing_changed { Problem::nothing_changed() } else { Problem::outcome_unknown() }
}

/// Removes the headers that are not forwarded, including those that `Connection` lists.
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
    for name in STRIPPED.iter().chain(&named).chain(&forwarding) {
        headers.remove(name);
    }
}

/// Joins the cookie headers: HTTP/2 may split them, HTTP/1.1 may not (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, joined);
    }
}

/// Sets a header of the edge, or removes the client's.
fn set(headers: &mut HeaderMap, name: &'static str, value: Option<String>) {
    match value.and_then(|value| HeaderValue::from_str(&value).ok()) {
        Some(value) => drop(headers.insert(name, value)),
        None => drop(headers.remove(name)),
    }
}
