//! Connections to one inner service, which may run at several addresses.
//!
//! A connection that fails is tried again for a while, at the other addresses and at the same: a service that restarts
//! refuses connections for some milliseconds. Nothing has been sent by then, so any request may wait for it.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

use super::upstream_stream::UpstreamStream;

/// The inner services are close, so an address that does not answer at once is given up for another attempt: a restarting
/// service ignores new connections for a moment, and the system would try again only after a second. Each round waits twice
/// as long.
const MIN_CONNECT_TIMEOUT: Duration = Duration::from_millis(250);
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Pauses between attempts.
const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_millis(200);
/// How long an address is tried last after it failed.
const AVOIDED_FOR: Duration = Duration::from_secs(2);

/// The addresses of an inner service. New connections take them in turn.
pub(super) struct Upstream {
    /// Names or IP addresses, with ports. A name may have several addresses.
    hosts: Vec<(String, u16)>,
    retry_for: Duration,
    turn: AtomicUsize,
    failed: Mutex<HashMap<SocketAddr, Instant>>,
}

impl Upstream {
    /// Reads a setting: one URL or several, separated by commas. Returns also the first one, without a slash at its end.
    pub(super) fn read(key: &str, urls: &str, retry_for: Duration) -> anyhow::Result<(Self, String)> {
        let mut hosts = Vec::new();
        for url in urls.split(',').map(str::trim) {
            let host = host_of(url).with_context(|| {
                format!("upstreams.{key}: `{url}` is no URL such as http://10.0.0.1:8081, without a path")
            })?;
            hosts.push(host);
        }
        let (turn, failed) = (AtomicUsize::default(), Mutex::default());
        let first = urls.split(',').next().unwrap_or_default().trim().trim_end_matches('/').to_owned();
        Ok((Self { hosts, retry_for, turn, failed }, first))
    }

    /// Connects to any address. After `retry_for`, returns the last error.
    async fn connect(&self) -> io::Result<TcpStream> {
        let deadline = Instant::now() + self.retry_for;
        let mut pause = MIN_PAUSE;
        let mut limit = if self.retry_for.is_zero() { MAX_CONNECT_TIMEOUT } else { MIN_CONNECT_TIMEOUT };
        loop {
            let error = match self.connect_once(limit).await {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if Instant::now() + pause > deadline {
                return Err(error);
            }
            #[expect(clippy::disallowed_methods, reason = "the backoff before the next attempt")]
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
            limit = (limit * 2).min(MAX_CONNECT_TIMEOUT);
        }
    }

    /// Tries every address once, those last that failed recently.
    async fn connect_once(&self, limit: Duration) -> io::Result<TcpStream> {
        let mut addresses = self.addresses().await?;
        let count = addresses.len().max(1);
        addresses.rotate_left(self.turn.fetch_add(1, Ordering::Relaxed) % count);
        addresses.sort_by_key(|address| self.has_failed(*address));
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
        for address in addresses {
            match timeout(limit, TcpStream::connect(address)).await.map_err(Into::into).flatten() {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => {
                    self.note_failure(address);
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// Looks all hosts up. Fails if none has an address.
    async fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let mut addresses = Vec::new();
        let mut last = None;
        for (host, port) in &self.hosts {
            match timeout(MAX_CONNECT_TIMEOUT, lookup_host((host.as_str(), *port)))
                .await
                .map_err(Into::into)
                .flatten()
            {
                Ok(found) => addresses.extend(found),
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) if addresses.is_empty() => Err(error),
            _ => Ok(addresses),
        }
    }

    fn has_failed(&self, address: SocketAddr) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get(&address).is_some_and(|at| at.elapsed() < AVOIDED_FOR)
    }

    fn note_failure(&self, address: SocketAddr) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        // The addresses of a name may change for years.
        failed.retain(|_, at| at.elapsed() < AVOIDED_FOR);
        failed.insert(address, Instant::now());
    }
}

/// Returns the host and the port of a URL without a path.
fn host_of(url: &str) -> anyhow::Result<(String, u16)> {
    let uri: Uri = url.parse()?;
    let host = uri.host().filter(|host| !host.is_empty()).context("it names no host")?;
    anyhow::ensure!(uri.scheme_str() == Some("http"), "only http is supported between the services");
    anyhow::ensure!(uri.path() == "/" && uri.query().is_none(), "it has a path");
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok((host, uri.port_u16().unwrap_or(80)))
}

/// Connects hyper's client.
#[derive(Clone)]
pub(super) struct Connector(Arc<Upstream>);

impl Connector {
    pub(super) fn new(upstream: Upstream) -> Self {
        Self(Arc::new(upstream))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<UpstreamStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The URL's host is the same for all addresses, so that they share one pool of connections.
    fn call(&mut self, _url: Uri) -> Self::Future {
        let upstream = Arc::clone(&self.0);
        Box::pin(async move { Ok(TokioIo::new(UpstreamStream::new(upstream.connect().await?))) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(urls: &str) -> anyhow::Result<(Upstream, String)> {
        Upstream::read("control_plane", urls, Duration::from_secs(60))
    }

    #[test]
    fn a_setting_has_one_url_or_several() {
        let (one, url) = upstream("http://127.0.0.1:8081/").unwrap();
        assert_eq!(
            (one.hosts, url.as_str()),
            (vec![("127.0.0.1".to_owned(), 8081)], "http://127.0.0.1:8081")
        );
        let (two, url) = upstream("http://a:1, http://[::1]:2").unwrap();
        assert_eq!(two.hosts, [("a".to_owned(), 1), ("::1".to_owned(), 2)]);
        assert_eq!(url, "http://a:1");
        for wrong in ["", "http://a:1,", "a:1", "https://a:1", "http://a:1/path", "http:///"] {
            let error = upstream(wrong).err().unwrap().to_string();
            assert!(error.starts_with("upstreams.control_plane: `"), "{wrong}: {error}");
        }
    }

    #[tokio::test]
    async fn a_connection_waits_until_one_of_the_addresses_accepts() {
        let bind = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (one, other) = (bind().local_addr().unwrap(), bind().local_addr().unwrap());
        let (upstream, _) = upstream(&format!("http://{one},http://{other}")).unwrap();
        let upstream = Arc::new(upstream);
        let connecting = tokio::spawn({
            let upstream = Arc::clone(&upstream);
            async move { upstream.connect().await }
        });
        sandbox::test::until(async || upstream.has_failed(one) && upstream.has_failed(other)).await;
        let _listener = tokio::net::TcpListener::bind(other).await.unwrap();
        let connected = connecting.await.unwrap().unwrap();
        assert_eq!(connected.peer_addr().unwrap(), other);
    }

    #[tokio::test]
    async fn new_connections_take_the_addresses_in_turn() {
        let listeners = [0, 1].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let [one, other] = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
        let (upstream, _) = upstream(&format!("http://{one},http://{other}")).unwrap();
        let mut peers = Vec::new();
        for _ in 0..4 {
            peers.push(upstream.connect().await.unwrap().peer_addr().unwrap());
        }
        assert_eq!(peers, [one, other, one, other]);
    }
}
