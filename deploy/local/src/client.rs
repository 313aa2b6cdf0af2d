//! The HTTP client of a local run's own services.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::Value;

use crate::folder::Folder;
use crate::stack;
use crate::stack_file::StackFile;

/// An HTTP client that calls this machine only.
pub(crate) struct Client(outbound::Client);

/// A response with its JSON body; null if it isn't JSON.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Client {
    pub(crate) fn new() -> Result<Self> {
        Self::with_authorities(Vec::new())
    }

    /// Creates a client that trusts the local authority too, if the directory has one.
    pub(crate) fn trusting(folder: &Folder) -> Result<Self> {
        let authority = folder.part(stack::AUTHORITY);
        match std::fs::read(&authority) {
            Ok(pem) => Self::with_authorities(pem),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::new(),
            Err(error) => Err(error).with_context(|| format!("reading {}", authority.display())),
        }
    }

    fn with_authorities(authorities: Vec<u8>) -> Result<Self> {
        let allow = ["127.0.0.0/8", "::1", "localhost", "*.localhost"].map(str::parse);
        let config = outbound::Config {
            allow: allow.into_iter().collect::<Result<_, _>>()?,
            max_body_bytes: 4 << 20,
            authorities,
            ..outbound::Config::default()
        };
        Ok(Self(outbound::Client::new(config)?))
    }

    /// Sends a request with headers and an optional JSON body.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&'static str, &str)],
        body: Option<&Value>,
    ) -> Result<Response> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
        }
        if body.is_some() {
            all.insert("content-type", HeaderValue::from_static("application/json"));
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let mut request = outbound::Request::post(url, all, body);
        request.method = method;
        request.whole_body = true;
        let response = self.0.send(request).await.with_context(|| format!("calling {url}"))?;
        Ok(Response {
            status: response.status,
            body: serde_json::from_slice(&response.body).unwrap_or_default(),
        })
    }

    /// Calls the API with a key. An unsuccessful response is an error with the response's body.
    pub(crate) async fn call(
        &self,
        key: &str,
        method: Method,
        url: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let bearer = format!("Bearer {key}");
        let headers: &[(&'static str, &str)] =
            if key.is_empty() { &[] } else { &[("authorization", &bearer)] };
        let response = self.send(method, url, headers, body).await?;
        if !response.status.is_success() {
            bail!("{url} returned {}: {}", response.status, response.body);
        }
        Ok(response.body)
    }

    /// Returns whether a service is ready.
    pub(crate) async fn is_ready(&self, metrics_url: &str) -> bool {
        let url = metrics_url.replace("/metrics", "/readyz");
        self.send(Method::GET, &url, &[], None).await.is_ok_and(|response| response.status.is_success())
    }

    /// Waits until every service is ready.
    pub(crate) async fn until_ready(&self, file: &StackFile, timeout: Duration) -> Result<()> {
        let began = Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        for (name, service) in &file.services {
            while !self.is_ready(&service.metrics_url).await {
                if began.elapsed() > timeout {
                    bail!("{name} is not ready after {timeout:?}; its log is in {}", file.log_dir);
                }
                ticks.tick().await;
            }
        }
        Ok(())
    }
}
