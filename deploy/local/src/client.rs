//! How a local run speaks to its own services.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::Value;

use crate::stack_file::StackFile;

/// Requests to this machine, and no other.
pub(crate) struct Client(outbound::Client);

/// A status and a JSON body, or null.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Client {
    pub(crate) fn new() -> Result<Self> {
        let allow = ["127.0.0.0/8", "::1", "localhost", "*.localhost"].map(str::parse);
        let config = outbound::Config {
            allow: allow.into_iter().collect::<Result<_, _>>()?,
            max_body_bytes: 4 << 20,
            ..outbound::Config::default()
        };
        Ok(Self(outbound::Client::new(config)?))
    }

    /// Asks with a JSON body, if any, and headers.
    pub(crate) async fn ask(
        &self,
        method: Method,
        url: &str,
        headers: &[(&'static str, &str)],
        body: Option<&Value>,
    ) -> Result<Answer> {
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
        let answer = self.0.send(request).await.with_context(|| format!("asking {url}"))?;
        Ok(Answer { status: answer.status, body: serde_json::from_slice(&answer.body).unwrap_or_default() })
    }

    /// Asks the API with a key; anything but success is an error that says what the API said.
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
        let answer = self.ask(method, url, headers, body).await?;
        if !answer.status.is_success() {
            bail!("{url} answered {}: {}", answer.status, answer.body);
        }
        Ok(answer.body)
    }

    /// Whether a service says that it is ready.
    pub(crate) async fn is_ready(&self, metrics_url: &str) -> bool {
        let url = metrics_url.replace("/metrics", "/readyz");
        self.ask(Method::GET, &url, &[], None).await.is_ok_and(|answer| answer.status.is_success())
    }

    /// Waits until every service is ready.
    pub(crate) async fn until_ready(&self, file: &StackFile, patience: Duration) -> Result<()> {
        let began = Instant::now();
        let mut turns = tokio::time::interval(Duration::from_millis(20));
        for (name, service) in &file.services {
            while !self.is_ready(&service.metrics_url).await {
                if began.elapsed() > patience {
                    bail!("{name} is not ready after {patience:?}; its log is in {}", file.log_dir);
                }
                turns.tick().await;
            }
        }
        Ok(())
    }
}
