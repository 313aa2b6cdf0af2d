//! An HTTP client that sends requests to one edge under any host name.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a browser that shows the response sends as `Accept`.
pub(crate) const NAVIGATION: (&str, &str) =
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestResponse {
    async fn read(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Self { status: head.status, headers: head.headers, body }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The value of a header, or an empty string if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts that this is a problem response with this status and code, as every error of the base host must be.
    /// Returns its body.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!((&problem["code"], &problem["status"]), (&code.into(), &status.into()), "{problem}");
        assert_eq!(problem["requestId"].as_str().unwrap(), self.header("x-request-id"));
        problem
    }
}

/// A client of one edge.
#[derive(Clone)]
pub(crate) struct Visitor {
    http: Client<HttpConnector, Full<Bytes>>,
    edge: SocketAddr,
}

impl Visitor {
    pub(crate) fn of(edge: SocketAddr) -> Self {
        Self { http: Client::builder(TokioExecutor::new()).build_http(), edge }
    }

    /// The same client over HTTP/2.
    pub(crate) fn over_http2(&self) -> Self {
        let http = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        Self { http, edge: self.edge }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.edge
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        host: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> TestResponse {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.edge));
        if !host.is_empty() {
            request = request.header("host", host);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.http.request(request.body(Full::new(body.into())).unwrap()).await.unwrap();
        TestResponse::read(response).await
    }

    /// Opens one HTTP/2 connection. Its requests name their host in the `:authority` header.
    pub(crate) async fn http2(&self) -> Http2 {
        let io = TokioIo::new(self.connect().await);
        let (send, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        Http2(send)
    }

    pub(crate) async fn get(&self, host: &str, path: &str) -> TestResponse {
        self.send(Method::GET, host, path, &[], "").await
    }

    /// Posts JSON to the base host.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> TestResponse {
        let json = [("content-type", "application/json")];
        self.send(Method::POST, "localhost", path, &json, body.to_string()).await
    }

    /// Posts URL-encoded fields, as a browser does.
    pub(crate) async fn post_form(&self, path: &str, pairs: &[(&str, &str)]) -> TestResponse {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let form = [("content-type", "application/x-www-form-urlencoded"), NAVIGATION];
        self.send(Method::POST, "localhost", path, &form, body).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.edge).await.unwrap()
    }

    /// Sends raw bytes and returns everything received until the connection closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        let mut response = Vec::new();
        // The edge may reset the connection while bytes are still in flight.
        let _or_reset = stream.read_to_end(&mut response).await;
        String::from_utf8_lossy(&response).into_owned()
    }
}

/// A connection over HTTP/2.
pub(crate) struct Http2(http2::SendRequest<Full<Bytes>>);

impl Http2 {
    /// Whether the edge has ended the connection.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    pub(crate) async fn get(&self, host: &str, path: &str, headers: &[(&str, &str)]) -> TestResponse {
        self.send(Method::GET, host, path, headers).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        host: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> TestResponse {
        let mut request = Request::builder().method(method).uri(format!("http://{host}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = self.0.clone().send_request(request.body(Full::default()).unwrap()).await;
        TestResponse::read(sent.unwrap()).await
    }
}
