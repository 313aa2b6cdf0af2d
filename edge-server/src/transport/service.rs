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
use http::{HeaderMap, Method, Request, Response, Version, header};
use http_body::Body as _;
use http_body_util::{Either as EitherBody, Full};
use hyper::body::Incoming;
use hyper::service::Service;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connections::Connection;
use super::fast_path;
use super::min_rate_body::MinRateBody;
use super::router::HostRouter;
use super::tracked_body::TrackedBody;
use crate::forms;
use crate::page_request::PageRequest;
use crate::sites::cached_response::WholeResponse;
use crate::sites::connection_cache::ConnectionCache;
use crate::sites::page_lookup;
use crate::state::EdgeState;

/// A response in memory, or one from the router, which keeps its connection active until it is complete.
type EdgeResponse = Response<EitherBody<Full<Bytes>, TrackedBody<Body>>>;

/// Serves the requests of one connection.
pub(crate) struct EdgeService {
    state: EdgeState,
    router: HostRouter,
    connection: Arc<Connection>,
    peer: SocketAddr,
    body_timeout: Duration,
    cache: RefCell<ConnectionCache>,
}

impl EdgeService {
    pub(crate) fn new(
        state: &EdgeState,
        router: &HostRouter,
        connection: Arc<Connection>,
        peer: SocketAddr,
        body_timeout: Duration,
    ) -> Self {
        Self {
            state: state.clone(),
            router: router.clone(),
            connection,
            peer,
            body_timeout,
            cache: RefCell::default(),
        }
    }

    /// Returns the response to a request that can be answered from the caches.
    fn answer_cached(&self, page: &PageRequest<'_>, headers: &HeaderMap) -> Option<WholeResponse> {
        forms::page_lookup::answer_cached(&self.state, page, headers)
            .or_else(|| page_lookup::answer_cached(&self.state, &mut self.cache.borrow_mut(), page, headers))
    }

    /// Serves the connection on the fast path, as long as that is possible; see [`fast_path::serve`].
    pub(crate) async fn serve_fast_path<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
    ) -> Option<fast_path::Handoff> {
        fast_path::serve(stream, &self.state, self.cache.get_mut(), &self.connection).await
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
        // A request with a body is never one for a page.
        if request.body().is_end_stream()
            && let Some(page) = PageRequest::new(&request)
            && let Some(response) = self.answer_cached(&page, headers)
        {
            let response = if is_head { remove_body(response) } else { response };
            return Either::Left(ready(Ok(response.map(EitherBody::Left))));
        }
        let active = self.connection.begin_response();
        let timeout = self.body_timeout;
        let mut request = request.map(|body| Body::new(MinRateBody::new(body, timeout)));
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let router = self.router.clone();
        Either::Right(Box::pin(async move {
            let response = router.route(request).await;
            let response = if is_head { remove_body(response) } else { response };
            Ok(response.map(|body| EitherBody::Right(TrackedBody::new(body, &active))))
        }))
    }
}

/// Turns a response into one to a HEAD request: without its body, but with the body's length.
fn remove_body<B: http_body::Body + Default>(mut response: Response<B>) -> Response<B> {
    let body = std::mem::take(response.body_mut());
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    response
}
