//! The hyper service of a connection. Answers cached pages at once, and passes every other request to the router, with
//! the client's address and a minimum rate for its body.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use bytes::Bytes;
use futures::future::Either;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use http_body_util::{Either as EitherBody, Full};
use hyper::body::Incoming;
use hyper::service::Service;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connections::Connection;
use super::fast_path;
use super::min_rate_body::MinRateBody;
use super::router::HostRouter;
use super::strict_transport::CustomDomain;
use super::tracked_body::TrackedBody;
use crate::forms;
use crate::metrics::{HostLabel, count_response};
use crate::page_request::PageRequest;
use crate::sites::cached_response::WholeResponse;
use crate::sites::classify_host::{classify_host, raw_host, requested_host};
use crate::sites::connection_cache::ConnectionCache;
use crate::sites::page_lookup;
use crate::state::EdgeState;
use crate::tls::{HttpsAddress, ServedCertificate};
use crate::transport::request_scheme::{FORWARDED_PROTO, RequestScheme};
use crate::unread_body;

/// A response in memory, or one from the router, which keeps its connection active until it is complete.
type EdgeResponse = Response<EitherBody<Full<Bytes>, TrackedBody<Body>>>;

/// How a connection is protected, and the consequences for its requests.
pub(crate) enum Security {
    /// Over HTTP.
    Plain,
    /// Over HTTP, and hosts with a certificate redirect to https.
    RedirectToHttps,
    /// Over HTTPS with this certificate; requests for hosts that it does not cover are misdirected.
    Tls(Arc<ServedCertificate>),
}

impl Security {
    fn certificate(&self) -> Option<&ServedCertificate> {
        match self {
            Self::Plain | Self::RedirectToHttps => None,
            Self::Tls(certificate) => Some(certificate),
        }
    }

    fn redirects(&self) -> bool {
        matches!(self, Self::RedirectToHttps)
    }
}

/// Serves the requests of one connection.
pub(crate) struct EdgeService {
    state: EdgeState,
    router: HostRouter,
    connection: Arc<Connection>,
    peer: SocketAddr,
    security: Security,
    scheme: RequestScheme,
    body_timeout: Duration,
    cache: RefCell<ConnectionCache>,
}

impl EdgeService {
    pub(crate) fn new(
        state: &EdgeState,
        router: &HostRouter,
        connection: Arc<Connection>,
        peer: SocketAddr,
        security: Security,
        body_timeout: Duration,
    ) -> Self {
        let scheme = RequestScheme::new(security.certificate().is_some(), peer, &state.trusted_proxies);
        Self {
            state: state.clone(),
            router: router.clone(),
            connection,
            peer,
            security,
            scheme,
            body_timeout,
            cache: RefCell::default(),
        }
    }

    /// Returns the response to a request that can be answered from the caches, and the kind of its host.
    fn answer_cached(
        &self,
        page: &PageRequest<'_>,
        headers: &HeaderMap,
    ) -> Option<(WholeResponse, HostLabel)> {
        forms::page_lookup::answer_cached(&self.state, page, headers)
            .map(|response| (response, HostLabel::Base))
            .or_else(|| page_lookup::answer_cached(&self.state, &mut self.cache.borrow_mut(), page, headers))
    }

    /// Serves the connection on the fast path, as long as that is possible; see [`fast_path::serve`].
    pub(crate) async fn serve_fast_path<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
    ) -> Option<fast_path::Handoff> {
        if self.security.redirects() {
            return Some(fast_path::Handoff::default());
        }
        let certificate = self.security.certificate();
        let origin = fast_path::Origin { certificate, scheme: self.scheme };
        fast_path::serve(stream, &self.state, self.cache.get_mut(), &self.connection, origin).await
    }

    /// Returns the kind of the host that a request is for.
    fn host_of(&self, request: &Request<Incoming>) -> HostLabel {
        let host = requested_host(request.version(), request.headers(), request.uri());
        host.map_or(HostLabel::Unknown, |host| classify_host(&self.state.addresses, &host).label())
    }

    /// Returns whether a request is for a host that the connection's certificate does not cover.
    fn is_misdirected(&self, request: &Request<Incoming>) -> bool {
        let host = || raw_host(request.version(), request.headers(), request.uri());
        let certificate = self.security.certificate();
        certificate.is_some_and(|certificate| host().is_some_and(|host| !certificate.covers(host)))
    }
}

impl Service<Request<Incoming>> for EdgeService {
    type Response = EdgeResponse;
    type Error = Infallible;
    type Future = Either<
        Ready<Result<EdgeResponse, Infallible>>,
        Pin<Box<dyn Future<Output = Result<EdgeResponse, Infallible>> + Send>>,
    >;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.connection.record_request();
        let headers = request.headers();
        // Over HTTP/1.1 hyper removes the body itself; over HTTP/2 it sends the body it is given.
        let is_head = *request.method() == Method::HEAD && request.version() == Version::HTTP_2;
        let is_http1 = request.version() < Version::HTTP_2;
        if self.is_misdirected(&request) {
            let response = misdirected().map(EitherBody::Left);
            count_response(self.host_of(&request), response.status());
            return Either::Left(ready(Ok(end_if_closing(&self.connection, is_http1, response))));
        }
        let is_secure = self.scheme.is_https(headers.get(FORWARDED_PROTO).map(HeaderValue::as_bytes));
        let redirects = self.security.redirects() && !is_secure;
        // A request with a body is never one for a page.
        if !redirects
            && request.body().is_end_stream()
            && let Some(page) = PageRequest::new(&request, is_secure)
            && let Some((response, host)) = self.answer_cached(&page, headers)
        {
            count_response(host, response.status());
            let response = if is_head { remove_body(response) } else { response };
            let response = response.map(EitherBody::Left);
            return Either::Left(ready(Ok(end_if_closing(&self.connection, is_http1, response))));
        }
        let active = self.connection.begin_response();
        let counted = self.connection.begin_request();
        let (timeout, host) = (self.body_timeout, self.host_of(&request));
        let mut request = request.map(|body| Body::new(MinRateBody::new(body, timeout)));
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let router = self.router.clone();
        let https = if redirects { HttpsAddress::of(&self.state, &request) } else { None };
        let https = https.map(|https| (https, self.state.clone()));
        let domain = if is_secure { CustomDomain::of(&self.state, &request) } else { None };
        let domain = domain.map(|domain| (domain, self.state.clone()));
        Either::Right(Box::pin(async move {
            let redirect = match https {
                Some((https, state)) => https.redirect(&state).await,
                None => None,
            };
            let mut response = match redirect {
                Some(redirect) => {
                    let (parts, body) = request.into_parts();
                    unread_body::discard(&parts.headers, body).await;
                    redirect
                }
                None => router.route(request).await,
            };
            if let Some((domain, state)) = domain {
                domain.set_policy(&state, response.headers_mut()).await;
            }
            count_response(host, response.status());
            let response = if is_head { remove_body(response) } else { response };
            let response = response.map(|body| EitherBody::Right(TrackedBody::new(body, &active, counted)));
            Ok(end_if_closing(active.connection(), is_http1, response))
        }))
    }
}

/// Tells an HTTP/1 client that this is the last response of a connection that is to be closed. Over HTTP/2, frames do.
fn end_if_closing(connection: &Connection, is_http1: bool, mut response: EdgeResponse) -> EdgeResponse {
    if is_http1 && connection.is_closing() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Returns the response to a request for another host than the connection's (RFC 9110, 15.5.20). The client sends it again
/// over a connection of its own.
fn misdirected() -> WholeResponse {
    let text = "The certificate of this connection is not for this host: connect by the host's own name.\n";
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// Turns a response into one to a HEAD request: without its body, but with the body's length.
fn remove_body<B: http_body::Body + Default>(mut response: Response<B>) -> Response<B> {
    let body = std::mem::take(response.body_mut());
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    response
}
