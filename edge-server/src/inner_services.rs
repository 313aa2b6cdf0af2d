//! The client of the inner services. It replaces forwarding headers with the edge's own, and authenticates with a token,
//! because the inner services trust the edge alone about the client's address.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use contract::edge;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use web::{Code, Problem, RequestId};

use crate::config;

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

/// The inner services are close, so a slower one counts as unavailable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A client of both services.
pub(crate) struct InnerServices {
    client: Client<HttpConnector, Body>,
    control_plane: String,
    collector: String,
    token: HeaderValue,
    /// Timeout for the head of a response; its body may take longer.
    response_timeout: Duration,
    long_response_timeout: Duration,
}

impl InnerServices {
    /// # Errors
    /// The token is not a valid header value.
    pub(crate) fn new(config: &config::Upstreams, token: &str) -> anyhow::Result<Self> {
        let mut token = HeaderValue::from_str(token)?;
        token.set_sensitive(true);
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector),
            control_plane: config.control_plane.trim_end_matches('/').to_owned(),
            collector: config.collector.trim_end_matches('/').to_owned(),
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
        let is_long = path.starts_with("/api/deploy/") || path == "/api/pages/batch";
        if is_long { self.long_response_timeout } else { self.response_timeout }
    }

    async fn forward(&self, base_url: &str, client: Option<IpAddr>, mut request: Request) -> Response {
        let timeout = self.timeout_for(request.uri().path());
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let Ok(uri) = format!("{base_url}{path}").parse::<Uri>() else {
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
        let is_safe = request.method().is_safe();
        match tokio::time::timeout(timeout, self.client.request(request)).await {
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
