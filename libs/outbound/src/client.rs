//! The client itself: one request, one answer, no second thoughts. No redirects, no proxy from the environment, no
//! cookies, no decompression.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use tokio::time::Instant;

use crate::body::{self, CutShort};
use crate::resolve::Checked;
use crate::target::Target;
use crate::{Allow, Error, Resolve, SystemResolver};

/// What headers say about the connection is the client's business, whoever asks for them.
const OURS: [HeaderName; 8] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::PROXY_AUTHORIZATION,
];

/// A client's bounds.
#[derive(Clone, Debug)]
pub struct Config {
    /// What may be called although it isn't public or not https.
    pub allow: Vec<Allow>,
    /// For the connection, TLS included.
    pub connect_timeout: Duration,
    /// For everything, up to the last byte read.
    pub total_timeout: Duration,
    /// How much of an answer's body is read.
    pub max_body_bytes: usize,
    /// The `User-Agent` of each request.
    pub user_agent: String,
}

impl Default for Config {
    /// Production's bounds: nothing but the public internet, 5 s to connect, 15 s in all, 64 KiB of answer.
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            total_timeout: Duration::from_secs(15),
            max_body_bytes: 64 * 1024,
            user_agent: concat!("webruntime/", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}

/// What is to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST` for webhooks.
    pub method: Method,
    /// As the user gave it.
    pub url: String,
    /// Those about the connection are left out.
    pub headers: HeaderMap,
    /// Empty for none.
    pub body: Bytes,
    /// Less time than the client's own bound; more is cut to it.
    pub timeout: Option<Duration>,
    /// The answer's whole body is needed: if it is longer than allowed, or doesn't end in time, the call has failed.
    /// Otherwise its beginning will do.
    pub whole_body: bool,
}

impl Request {
    /// A POST whose answer matters only in its status and the beginning of its body.
    #[must_use]
    pub fn post(url: impl Into<String>, headers: HeaderMap, body: Bytes) -> Self {
        Self { method: Method::POST, url: url.into(), headers, body, timeout: None, whole_body: false }
    }
}

/// What came back, whatever its status.
#[derive(Clone, Debug)]
pub struct Response {
    /// Redirects included: they are answers like others.
    pub status: StatusCode,
    /// As received.
    pub headers: HeaderMap,
    /// The body, or its beginning.
    pub body: Bytes,
    /// There was more, or the body didn't end in time, or broke off.
    pub truncated: bool,
    /// From the call to the last byte read.
    pub elapsed_ms: u64,
}

/// Calls what may be called. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    config: Arc<Config>,
    /// For the public internet: names are checked.
    guarded: reqwest::Client,
    /// For allow-listed targets. Apart, so that no connection of one serves the other.
    open: reqwest::Client,
}

impl Client {
    /// A client that asks the system for addresses.
    ///
    /// # Errors
    /// If TLS can't be set up or the user agent isn't a header value.
    pub fn new(config: Config) -> Result<Self, Error> {
        Self::with_resolver(config, SystemResolver)
    }

    /// A client that asks `resolver`; its answers are checked all the same.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_resolver(config: Config, resolver: impl Resolve) -> Result<Self, Error> {
        let resolver: Arc<dyn Resolve> = Arc::new(resolver);
        let allow: Arc<[Allow]> = config.allow.clone().into();
        let checked = |open| Checked { resolver: Arc::clone(&resolver), allow: Arc::clone(&allow), open };
        let (guarded, open) = (build(&config, checked(false))?, build(&config, checked(true))?);
        Ok(Self { config: Arc::new(config), guarded, open })
    }

    /// Sends a request once and reads the answer within bounds.
    ///
    /// # Errors
    /// Any [`Error`]; an answer of whatever status is none.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        let began = Instant::now();
        let total = self.config.total_timeout;
        let until = began + request.timeout.map_or(total, |timeout| timeout.min(total));
        let Target { url, open } = Target::read(&request.url, &self.config.allow)?;
        let mut headers = request.headers;
        for name in &OURS {
            headers.remove(name);
        }
        let client = if open { &self.open } else { &self.guarded };
        let sending = client.request(request.method, url).headers(headers).body(request.body).send();
        let answered = tokio::time::timeout_at(until, sending).await.map_err(|_elapsed| Error::Timeout)?;
        let mut answer = answered.map_err(|error| Error::sort(&error))?;
        let (body, cut) = body::read(&mut answer, self.config.max_body_bytes, until).await;
        let truncated = cut.is_some();
        match cut.filter(|_| request.whole_body) {
            Some(CutShort::Size) => return Err(Error::TooLarge),
            Some(CutShort::Time) => return Err(Error::Timeout),
            Some(CutShort::Broken(error)) => return Err(error),
            None => {}
        }
        Ok(Response {
            status: answer.status(),
            headers: std::mem::take(answer.headers_mut()),
            body,
            truncated,
            elapsed_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the guarded client that the ban points to")]
fn build(config: &Config, resolver: Checked) -> Result<reqwest::Client, Error> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls()?)
        .dns_resolver(Arc::new(resolver))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        // A request that may have arrived is for the caller to send again, not for the client.
        .retry(reqwest::retry::never())
        .connect_timeout(config.connect_timeout)
        // As many as a busy webhook has attempts under way: each closed one costs a handshake at the next.
        .pool_max_idle_per_host(64)
        .pool_idle_timeout(Duration::from_secs(30))
        .user_agent(config.user_agent.as_str())
        .build()
        .map_err(|error| Error::sort(&error))
}

/// ring and the roots that browsers trust, both built in: the same on every machine.
fn tls() -> Result<rustls::ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls { reason: error.to_string() })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}
