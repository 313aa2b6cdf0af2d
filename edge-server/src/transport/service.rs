//! The door: what every request comes through. A hit is answered on the spot; everything else goes to the rooms
//! behind, with its visitor's address and a limit on how slowly its body may come.

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
use tokio::net::TcpStream;

use crate::forms;
use crate::sites::connection_cache::Memory;
use crate::sites::page_lookup;
use crate::sites::page_lookup::PageRequest;
use crate::sites::page_response::Reply;
use crate::state::EdgeState;
use crate::transport::connections::{Connection, TrackedBody};
use crate::transport::fast_path;
use crate::transport::min_rate_body::MinRateBody;
use crate::transport::router::HostRouter;

/// An answer: whole and in memory, or one that comes from behind and keeps its connection's seat busy.
type Answer = Response<EitherBody<Full<Bytes>, TrackedBody<Body>>>;

/// One connection's door.
pub(crate) struct EdgeService {
    edge: EdgeState,
    rooms: HostRouter,
    seat: Arc<Connection>,
    peer: SocketAddr,
    body_patience: Duration,
    memory: RefCell<Memory>,
}

impl EdgeService {
    pub(crate) fn new(
        edge: &EdgeState,
        rooms: &HostRouter,
        seat: Arc<Connection>,
        peer: SocketAddr,
        body_patience: Duration,
    ) -> Self {
        Self {
            edge: edge.clone(),
            rooms: rooms.clone(),
            seat,
            peer,
            body_patience,
            memory: RefCell::default(),
        }
    }

    /// The answer to a request that hyper has read, if it can be given right now.
    fn answer(&self, wanted: &PageRequest<'_>, asked: &HeaderMap) -> Option<Reply> {
        let memory = &mut *self.memory.borrow_mut();
        forms::hit(&self.edge, memory, wanted, asked)
            .or_else(|| page_lookup::answer(&self.edge, memory, wanted, asked))
    }

    /// Serves what needs no more of it; see [`quick::serve`].
    pub(crate) async fn quick(&mut self, stream: &mut TcpStream) -> Option<fast_path::Handoff> {
        fast_path::serve(stream, &self.edge, self.memory.get_mut(), &self.seat).await
    }
}

impl Service<Request<Incoming>> for EdgeService {
    type Response = Answer;
    type Error = Infallible;
    type Future = Either<
        Ready<Result<Answer, Infallible>>,
        Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>,
    >;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.seat.begin();
        let asked = request.headers();
        // Over HTTP/1.1 hyper leaves the body away, over HTTP/2 it sends what it is given.
        let is_head = *request.method() == Method::HEAD && request.version() == Version::HTTP_2;
        // A request that brings a body is never a page's.
        if request.body().is_end_stream()
            && let Some(wanted) = PageRequest::read(request.method(), request.uri(), asked)
            && let Some(reply) = self.answer(&wanted, asked)
        {
            let reply = if is_head { without_body(reply) } else { reply };
            return Either::Left(ready(Ok(reply.map(EitherBody::Left))));
        }
        let busy = self.seat.begin_response();
        let patience = self.body_patience;
        let mut request = request.map(|body| Body::new(MinRateBody::new(body, patience)));
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let rooms = self.rooms.clone();
        Either::Right(Box::pin(async move {
            let response = rooms.answer(request).await;
            let response = if is_head { without_body(response) } else { response };
            Ok(response.map(|body| EitherBody::Right(busy.while_coming(body))))
        }))
    }
}

/// What a HEAD is answered with: the length of a body, and none.
fn without_body<B: http_body::Body + Default>(mut response: Response<B>) -> Response<B> {
    let body = std::mem::take(response.body_mut());
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    }
    response
}
