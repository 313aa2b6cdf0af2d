//! The HTTP client: one request, one response. No redirects, no proxy from the environment, no cookies, no decompression,
//! no retries.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::time::Instant;

use crate::body::{self, Truncation};
use crate::resolve::CheckedResolver;
use crate::target::Target;
use crate::{Allow, Error, Resolve, SystemResolver};

/// Headers about the connection, which only the client sets; removed from requests.
const CONNECTION_HEADERS: [HeaderName; 8] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::PROXY_AUTHORIZATION,
];

/// A client's limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// Targets that may be called although they are not public or not https.
    pub allow: Vec<Allow>,
    /// Covers TCP and TLS.
    pub connect_timeout: Duration,
    /// Covers the whole call, up to the last byte of the body.
    pub total_timeout: Duration,
    /// Number of bytes read of a response body; the rest is discarded.
    pub max_body_bytes: usize,
    pub user_agent: String,
    /// Certificates in PEM of further authorities, which are trusted for allow-listed targets alone.
    pub authorities: Vec<u8>,
}

impl Default for Config {
    /// Returns the production limits: public targets only, 5 s to connect, 15 s in total, 64 KiB of body.
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            total_timeout: Duration::from_secs(15),
            max_body_bytes: 64 * 1024,
            user_agent: concat!("webruntime/", env!("CARGO_PKG_VERSION")).into(),
            authorities: Vec::new(),
        }
    }
}

/// An outgoing request.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// The URL as the user entered it.
    pub url: String,
    /// Headers about the connection are removed.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// A timeout shorter than the client's own, which is the maximum.
    pub timeout: Option<Duration>,
    /// Fails the call if the response body exceeds its limit or does not end in time. If `false`, the beginning of the body
    /// is enough.
    pub whole_body: bool,
}

impl Request {
    /// Creates a POST request for which the status and the beginning of the response body are enough.
    #[must_use]
    pub fn post(url: impl Into<String>, headers: HeaderMap, body: Bytes) -> Self {
        Self { method: Method::POST, url: url.into(), headers, body, timeout: None, whole_body: false }
    }
}

/// A response of any status.
#[derive(Clone, Debug)]
pub struct Response {
    /// Includes redirects, which are not followed.
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The body or its beginning.
    pub body: Bytes,
    /// Whether the body is incomplete: too long, too slow or interrupted.
    pub truncated: bool,
    /// Duration of the call, up to the last byte read.
    pub elapsed_ms: u64,
}

/// The guarded HTTP client. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    config: Arc<Config>,
    /// Calls public targets: addresses from DNS are checked.
    guarded: reqwest::Client,
    /// Calls allow-listed targets. Separate, so that no connection of one serves the other.
    unguarded: reqwest::Client,
}

impl Client {
    /// Creates a client with the system's DNS resolver.
    pub fn new(config: Config) -> Result<Self, Error> {
        Self::with_resolver(config, SystemResolver)
    }

    /// Creates a client with another resolver. Its results are checked as well.
    pub fn with_resolver(config: Config, resolver: impl Resolve) -> Result<Self, Error> {
        let resolver: Arc<dyn Resolve> = Arc::new(resolver);
        let allow: Arc<[Allow]> = config.allow.clone().into();
        let checked = |is_allowed| CheckedResolver {
            resolver: Arc::clone(&resolver),
            allow: Arc::clone(&allow),
            is_allowed,
        };
        let (guarded, unguarded) =
            (build(&config, checked(false), &[])?, build(&config, checked(true), &config.authorities)?);
        Ok(Self { config: Arc::new(config), guarded, unguarded })
    }

    /// Sends a request once and reads the response within the limits. A response of any status is `Ok`.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        let started = Instant::now();
        let total = self.config.total_timeout;
        let deadline = started + request.timeout.map_or(total, |timeout| timeout.min(total));
        let Target { url, is_allowed } = Target::parse(&request.url, &self.config.allow)?;
        let mut headers = request.headers;
        for name in &CONNECTION_HEADERS {
            headers.remove(name);
        }
        let client = if is_allowed { &self.unguarded } else { &self.guarded };
        let sending = client.request(request.method, url).headers(headers).body(request.body).send();
        let response = tokio::time::timeout_at(deadline, sending).await.map_err(|_elapsed| Error::Timeout)?;
        let mut response = response.map_err(|error| Error::classify(&error))?;
        let (body, truncation) = body::read(&mut response, self.config.max_body_bytes, deadline).await;
        let truncated = truncation.is_some();
        match truncation.filter(|_| request.whole_body) {
            Some(Truncation::Size) => return Err(Error::TooLarge),
            Some(Truncation::Timeout) => return Err(Error::Timeout),
            Some(Truncation::Failed(error)) => return Err(error),
            None => {}
        }
        Ok(Response {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body,
            truncated,
            elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the guarded client that the ban points to")]
fn build(config: &Config, resolver: CheckedResolver, authorities: &[u8]) -> Result<reqwest::Client, Error> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls(authorities)?)
        .dns_resolver(Arc::new(resolver))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        // Only the caller may repeat a request that may have arrived.
        .retry(reqwest::retry::never())
        .connect_timeout(config.connect_timeout)
        // As many as a busy webhook has attempts in flight: every closed connection costs another handshake.
        .pool_max_idle_per_host(64)
        .pool_idle_timeout(Duration::from_secs(30))
        .user_agent(config.user_agent.as_str())
        .build()
        .map_err(|error| Error::classify(&error))
}

/// Uses ring, and the root certificates of browsers beside those of `authorities`. Both are built in, so they are the same on
/// every machine.
fn tls(authorities: &[u8]) -> Result<rustls::ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for authority in CertificateDer::pem_slice_iter(authorities) {
        let authority = authority.map_err(|error| Error::Tls { reason: error.to_string() })?;
        roots.add(authority).map_err(|error| Error::Tls { reason: error.to_string() })?;
    }
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls { reason: error.to_string() })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}
