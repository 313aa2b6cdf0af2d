//! A client as plain as a visitor's: requests to this machine, under whatever host name the story wants.

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::until;

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's value, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Speaks to one system's public port. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: HyperClient<HttpConnector, Full<Bytes>>,
    port: u16,
    /// The API key sent with every request, if any.
    pub key: Option<String>,
}

impl Client {
    /// A client of the system on that port of this machine.
    pub fn new(port: u16) -> Self {
        Self { http: HyperClient::builder(TokioExecutor::new()).build_http(), port, key: None }
    }

    /// Sends one request. `url` may name any host of the system: it is reached on this machine all the same.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer> {
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
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// A GET.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn get(&self, url: &str) -> Result<Answer> {
        self.send(Method::GET, url, &[], Bytes::new()).await
    }

    /// Sends JSON.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn json(&self, method: Method, url: &str, body: &Value) -> Result<Answer> {
        self.send(method, url, &[("content-type", "application/json")], body.to_string().into()).await
    }

    /// Sends JSON, and again while the service says that it is away and has changed nothing, as its problem's
    /// `Retry-After` asks clients to.
    ///
    /// # Errors
    /// It doesn't come back, or answers with another error.
    pub async fn insist(&self, method: Method, url: &str, body: &Value) -> Result<Value> {
        let answer = until(&format!("{method} {url} to be answered"), async || {
            let answer = self.json(method.clone(), url, body).await.ok()?;
            (answer.status != StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
        })
        .await?;
        anyhow::ensure!(answer.status.is_success(), "{method} {url}: {} {}", answer.status, answer.text());
        Ok(answer.json())
    }
}
