//! The way on to the inner services, which believe us and nobody else about who calls.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use contract::edge as headers;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use web::{Code, Problem, RequestId};

use crate::config;
use crate::edge::Edge;

/// Headers that belong to one connection (RFC 9110, 7.6.1), and those only we may set.
const NOT_PASSED_ON: [HeaderName; 11] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("traceparent"),
];

/// The services behind the edge.
pub(crate) struct Inner {
    client: Client<HttpConnector, Body>,
    control_plane: String,
    collector: String,
    token: HeaderValue,
}

impl Inner {
    /// The services at those addresses, reached with that token.
    ///
    /// # Errors
    /// The token can't stand in a header.
    pub(crate) fn new(config: &config::Inner, token: &str) -> anyhow::Result<Self> {
        let mut token = HeaderValue::from_str(token)?;
        token.set_sensitive(true);
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            control_plane: config.control_plane.trim_end_matches('/').to_owned(),
            collector: config.collector.trim_end_matches('/').to_owned(),
            token,
        })
    }

    async fn pass(&self, to: &str, visitor: Option<IpAddr>, mut request: Request) -> Response {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let Ok(uri) = format!("{to}{path}").parse::<Uri>() else {
            return Problem::new(Code::NotFound, "this path can't be read").into_response();
        };
        let id = request.extensions().get::<RequestId>().cloned();
        let own = request.headers_mut();
        NOT_PASSED_ON.iter().for_each(|name| drop(own.remove(name)));
        own.remove(header::HOST);
        own.insert(headers::TOKEN, self.token.clone());
        set(own, headers::CLIENT_IP, visitor.map(|ip| ip.to_string()));
        set(own, headers::REQUEST_ID, id.map(|id| id.0));
        service::telemetry::inject(own);
        *request.uri_mut() = uri;
        *request.version_mut() = http::Version::HTTP_11;
        match self.client.request(request).await {
            Ok(response) => {
                let mut response = response.map(Body::new);
                NOT_PASSED_ON.iter().for_each(|name| drop(response.headers_mut().remove(name)));
                response
            }
            Err(error) => {
                tracing::warn!(%error, "an inner service can't be reached");
                let detail = "a part of the service is not reachable right now; nothing was changed";
                Problem::new(Code::Unavailable, detail).retry_after(2).into_response()
            }
        }
    }
}

/// Sets a header of ours, or removes what the visitor put in its place.
fn set(headers: &mut HeaderMap, name: &'static str, value: Option<String>) {
    match value.and_then(|value| HeaderValue::from_str(&value).ok()) {
        Some(value) => drop(headers.insert(name, value)),
        None => drop(headers.remove(name)),
    }
}

pub(crate) async fn to_control_plane(State(edge): State<Edge>, request: Request) -> Response {
    let visitor = edge.proxies.visitor(request.headers(), request.extensions());
    edge.inner.pass(&edge.inner.control_plane, visitor, request).await
}

pub(crate) async fn to_collector(State(edge): State<Edge>, request: Request) -> Response {
    let visitor = edge.proxies.visitor(request.headers(), request.extensions());
    edge.inner.pass(&edge.inner.collector, visitor, request).await
}
