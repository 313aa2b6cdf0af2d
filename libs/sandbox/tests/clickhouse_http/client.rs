//! Clients of the HTTP interface.

use std::ffi::OsString;

use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use clickhouse::Client;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use sandbox::clickhouse::{ClickHouse, Options};
use sandbox::programs::Source;
use sandbox::progress::Progress;
use sandbox::test::TestClickHouse;
use url::form_urlencoded;

/// Options that use libchdb, whatever is installed.
pub(crate) fn options() -> Options {
    let command: Vec<OsString> = vec![env!("CARGO_BIN_EXE_sandbox").into(), "clickhouse-http".into()];
    Options { source: Source::Fetched, ..Options::temporary(command) }
}

/// Starts a server for one test.
pub(crate) async fn start(options: Options) -> ClickHouse {
    ClickHouse::start(options, &Progress::silent()).await.unwrap()
}

/// Returns the crate's client of a database for one test.
pub(crate) async fn client() -> Client {
    client_of(&sandbox::test::clickhouse().await)
}

pub(crate) fn client_of(test: &TestClickHouse) -> Client {
    let client = Client::default().with_url(&test.url).with_database(&test.database);
    client.with_user(&test.user).with_password(&test.password)
}

pub(crate) fn client_of_server(server: &ClickHouse) -> Client {
    Client::default().with_url(server.url()).with_user(server.user()).with_password(server.password())
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Sends a POST with these arguments and this body over plain HTTP.
pub(crate) async fn post(
    test: &TestClickHouse,
    arguments: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Response {
    send(test, "POST", arguments, &[], body.into()).await
}

pub(crate) async fn send(
    test: &TestClickHouse,
    method: &str,
    arguments: &[(&str, &str)],
    headers: &[(&str, &str)],
    body: Bytes,
) -> Response {
    let arguments = form_urlencoded::Serializer::new(String::new()).extend_pairs(arguments).finish();
    let mut request = Request::builder().method(method).uri(format!("{}/?{arguments}", test.url));
    let account = [("x-clickhouse-user", &*test.user), ("x-clickhouse-key", &test.password)];
    for (name, value) in account.iter().chain(headers) {
        request = request.header(*name, *value);
    }
    let http = legacy::Client::builder(TokioExecutor::new()).build_http();
    let response = http.request(request.body(Full::new(body)).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    Response { status: parts.status, headers: parts.headers, body: body.collect().await.unwrap().to_bytes() }
}
