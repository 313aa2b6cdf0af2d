//! Calls to providers: those of the libraries that speak their protocols go through `outbound`, like all others.

use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use oauth2::{AsyncHttpClient, HttpRequest, HttpResponse};
use outbound::{Client, Error, Request};

/// Somebody waits at their browser.
const PATIENCE: Duration = Duration::from_secs(10);
/// The keys of a large provider.
const MOST_BYTES: usize = 512 * 1024;

/// The way to providers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Calls(Client);

impl Calls {
    /// Calls to the public internet, and to what is named in `allow`.
    ///
    /// # Errors
    /// An entry of `allow` can't be read.
    pub(super) fn new(allow: &[String]) -> anyhow::Result<Self> {
        let allow =
            allow.iter().map(|entry| entry.parse()).collect::<Result<_, _>>().context("signin.allow")?;
        let config = outbound::Config {
            allow,
            total_timeout: PATIENCE,
            max_body_bytes: MOST_BYTES,
            ..outbound::Config::default()
        };
        Ok(Self(Client::new(config)?))
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, Error> {
        let (head, body) = request.into_parts();
        let request = Request {
            method: head.method,
            url: head.uri.to_string(),
            headers: head.headers,
            body: Bytes::from(body),
            timeout: None,
            whole_body: true,
        };
        let answer = self.0.send(request).await?;
        let mut response = HttpResponse::new(answer.body.to_vec());
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

impl<'c> AsyncHttpClient<'c> for Calls {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Error>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
