//! The HTTP client of the OAuth libraries. It sends their requests through `outbound`, which guards all outgoing calls.

use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use oauth2::{AsyncHttpClient, HttpRequest, HttpResponse};
use outbound::{Client, Error, Request};

/// A visitor waits for the response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Upper bound of a response; the key sets of large providers fit.
const MAX_BODY_BYTES: usize = 512 * 1024;

/// An HTTP client for providers. Cheap to clone.
#[derive(Clone)]
pub(super) struct ProviderClient(Client);

impl ProviderClient {
    /// Returns a client for the public internet and the hosts and networks in `allow`.
    pub(super) fn new(allow: &[String]) -> anyhow::Result<Self> {
        let allow =
            allow.iter().map(|entry| entry.parse()).collect::<Result<_, _>>().context("signin.allow")?;
        let config = outbound::Config {
            allow,
            total_timeout: TIMEOUT,
            max_body_bytes: MAX_BODY_BYTES,
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
        let received = self.0.send(request).await?;
        let mut response = HttpResponse::new(received.body.to_vec());
        *response.status_mut() = received.status;
        *response.headers_mut() = received.headers;
        Ok(response)
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderClient {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Error>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
