//! A minimal HTTP client: sends requests to one system on this machine under any host name.

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::until;

/// A complete HTTP response.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Response {
    /// The body as JSON, or null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text, with invalid UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's value, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// A client of one system's public port. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: HyperClient<HttpConnector, Full<Bytes>>,
    port: u16,
    /// The API key sent with every request, if any.
    pub key: Option<String>,
}

impl Client {
    /// A client of the system that listens on `port` of this machine.
    pub fn new(port: u16) -> Self {
        Self { http: HyperClient::builder(TokioExecutor::new()).build_http(), port, key: None }
    }

    /// Sends one request. The host of `url` becomes the Host header; the connection goes to this machine.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Response> {
        let uri: http::Uri = url.parse().with_context(|| format!("reading {url}"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let host = uri.authority().map_or("localhost", |authority| authority.as_str());
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://127.0.0.1:{}{path}", self.port))
            .header("host", host);
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.http.request(request.body(Full::new(body))?).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Response { status: head.status, headers: head.headers, body })
    }

    /// Sends a GET request.
    pub async fn get(&self, url: &str) -> Result<Response> {
        self.send(Method::GET, url, &[], Bytes::new()).await
    }

    /// Sends a JSON body.
    pub async fn json(&self, method: Method, url: &str, body: &Value) -> Result<Response> {
        self.send(method, url, &[("content-type", "application/json")], body.to_string().into()).await
    }

    /// Sends a JSON body and retries while the response is 503, which means that nothing was changed. Fails on any other
    /// error response.
    pub async fn retry_until_ok(&self, method: Method, url: &str, body: &Value) -> Result<Value> {
        let answer = until(&format!("{method} {url} to be answered"), async || {
            let answer = self.json(method.clone(), url, body).await.ok()?;
            (answer.status != StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
        })
        .await?;
        anyhow::ensure!(answer.status.is_success(), "{method} {url}: {} {}", answer.status, answer.text());
        Ok(answer.json())
    }
}
