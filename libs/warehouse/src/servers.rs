//! Connections to several servers of a cluster. Each new connection goes to the next server that accepts one, so requests
//! are spread, and those that follow the death of a server reach another. Nothing is sent twice: only connecting is
//! repeated. A request that breaks off fails, and its caller decides whether it may be repeated.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tower::{Service, ServiceExt as _};

use crate::error::Error;

pub(crate) use http::Uri;

/// How long a server may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// For this long after a failed attempt, a server is the last to be tried.
const AVOIDED_FOR: Duration = Duration::from_secs(10);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The servers of `warehouse.url`.
#[derive(Debug)]
pub(crate) struct Servers {
    addresses: Vec<Uri>,
    failed_at: Mutex<Vec<Option<Instant>>>,
    next: AtomicUsize,
}

impl Servers {
    /// Reads addresses that are separated by commas.
    pub(crate) fn parse(urls: &str) -> Result<Self, Error> {
        let invalid = |reason: String| Error::Setting(format!("warehouse.url: {reason}"));
        let mut addresses: Vec<Uri> = Vec::new();
        for url in urls.split(',').map(str::trim) {
            let address: Uri = url.parse().map_err(|error| invalid(format!("not a URL: {error}")))?;
            if address.host().is_none() || !matches!(address.scheme_str(), Some("http" | "https")) {
                return Err(invalid(
                    "an address must begin with http:// or https:// and name a host".to_owned(),
                ));
            }
            addresses.push(address);
        }
        if let [first, others @ ..] = addresses.as_slice() {
            let differs =
                |one: &Uri| one.scheme() != first.scheme() || one.path_and_query() != first.path_and_query();
            if others.iter().any(differs) {
                return Err(invalid("several addresses may differ in their hosts and ports only".to_owned()));
            }
        }
        let failed_at = Mutex::new(vec![None; addresses.len()]);
        Ok(Self { addresses, failed_at, next: AtomicUsize::new(0) })
    }

    /// Returns the first address, which stands for all in a request.
    pub(crate) fn first(&self) -> String {
        self.addresses.first().map(Uri::to_string).unwrap_or_default()
    }

    pub(crate) fn count(&self) -> usize {
        self.addresses.len()
    }

    /// Returns the indices of the servers in the order of one attempt: those that failed lately at the end.
    fn order(&self, now: Instant) -> Vec<usize> {
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let mut order: Vec<usize> = (0..self.count()).map(|index| (start + index) % self.count()).collect();
        let failed_at = self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        let has_failed = |index: &usize| {
            failed_at.get(*index).copied().flatten().is_some_and(|failed| now < failed + AVOIDED_FOR)
        };
        order.sort_by_key(has_failed);
        order
    }

    fn record(&self, index: usize, failed_at: Option<Instant>) {
        let mut all = self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = all.get_mut(index) {
            *server = failed_at;
        }
    }
}

/// Connects to one of several servers, whichever address a request names.
#[derive(Clone)]
pub(crate) struct AnyServer<C> {
    connector: C,
    servers: Arc<Servers>,
}

impl<C> AnyServer<C> {
    pub(crate) fn new(connector: C, servers: Arc<Servers>) -> Self {
        Self { connector, servers }
    }
}

impl<C> Service<Uri> for AnyServer<C>
where
    C: Service<Uri> + Clone + Send + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send,
    C::Response: Send,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { connector, servers } = self.clone();
        Box::pin(async move {
            let mut last: BoxError = "warehouse.url names no server".into();
            for index in servers.order(Instant::now()) {
                let Some(address) = servers.addresses.get(index) else { continue };
                let connecting = connector.clone().oneshot(address.clone());
                last = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
                    Ok(Ok(connection)) => {
                        servers.record(index, None);
                        return Ok(connection);
                    }
                    Ok(Err(error)) => error.into(),
                    Err(_elapsed) => "the server does not accept a connection in time".into(),
                };
                tracing::warn!(server = %address, error = %last, "connecting to a ClickHouse server failed");
                servers.record(index, Some(Instant::now()));
            }
            Err(last)
        })
    }
}
