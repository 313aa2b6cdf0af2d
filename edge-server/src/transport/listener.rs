//! The public listeners: accept connections over HTTP and HTTPS, with limits for untrusted clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use service::config::ProxyProtocol;
use service::{Accepting, Drain, Draining, ListeningSocket, Shutdown};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connection_task::{Servers, serve_requests, set_socket_options, unless_closing};
use super::connections::{ConnectionGuard, ConnectionTable, Room};
use super::fast_path::Protocol;
use super::proxy_protocol;
use super::router::HostRouter;
use super::service::{EdgeService, Security};
use crate::config::Connections;
use crate::metrics::{self, OpenConnection};
use crate::state::EdgeState;
use crate::tls;

/// Interval at which a waiting connection tries again to replace an idle one.
const CLOSE_INTERVAL: Duration = Duration::from_millis(100);
/// Number of idle checks within the shortest timeout.
const CHECKS_PER_TIMEOUT: u32 = 8;

/// The sockets that clients connect to.
pub(crate) struct PublicSockets {
    pub(crate) main: ListeningSocket,
    pub(crate) https: Option<ListeningSocket>,
    pub(crate) proxy_protocol: ProxyProtocol,
    pub(crate) https_proxy_protocol: ProxyProtocol,
    pub(crate) drain: Drain,
}

/// What connections of one listener begin with.
#[derive(Clone, Copy)]
struct Listener {
    is_tls: bool,
    proxy_protocol: ProxyProtocol,
}

/// What all connections share.
struct Acceptor {
    state: EdgeState,
    router: HostRouter,
    limits: Connections,
    servers: Servers,
    table: Arc<ConnectionTable>,
    permits: Arc<Semaphore>,
    /// Whether connections over HTTP lead to https.
    redirects_to_https: bool,
}

/// Serves clients until `shutdown`, then drains their connections. Failed accepts are retried.
pub(crate) async fn serve(
    sockets: PublicSockets,
    state: EdgeState,
    router: HostRouter,
    limits: Connections,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let draining = Draining::new(sockets.drain, &shutdown);
    let accept_on = |socket| Ok::<_, std::io::Error>(Accepting::new(socket, &draining)?.from_afar());
    let main = accept_on(sockets.main).context("listen.main")?;
    let https = sockets.https.map(accept_on).transpose().context("listen.https")?;
    let table = ConnectionTable::new(limits.clone(), draining.clone());
    #[expect(clippy::cast_precision_loss, reason = "a gauge needs no more than 53 bits")]
    metrics::CONNECTIONS_MAX.set(limits.max as f64, &[]);
    let reaper = tokio::spawn(reap_idle(Arc::clone(&table), limits.clone()));
    let acceptor = Arc::new(Acceptor {
        // With a base URL of http, links lead there and not to https.
        redirects_to_https: https.is_some() && state.addresses.base().starts_with("https://"),
        servers: Servers::new(&limits),
        permits: Arc::new(Semaphore::new(limits.max)),
        table: Arc::clone(&table),
        state,
        router,
        limits,
    });
    let https = async {
        if let Some(accepting) = https {
            let kind = Listener { is_tls: true, proxy_protocol: sockets.https_proxy_protocol };
            acceptor.accept_all(accepting, kind).await;
        }
    };
    let kind = Listener { is_tls: false, proxy_protocol: sockets.proxy_protocol };
    let accepted = async { tokio::join!(acceptor.accept_all(main, kind), https) };
    let drained = async {
        shutdown.requested().await;
        table.begin_drain();
        draining.over().await;
        // Connections of the queue may wait for permits.
        tokio::time::sleep_until(draining.deadline()).await;
    };
    tokio::select! {
        // First the drain, so that it has begun for all connections when the sockets are closed.
        biased;
        () = drained => {}
        _closed = accepted => {}
    }
    let aborted = table.drain().await;
    if aborted > 0 {
        tracing::warn!(
            connections = aborted,
            "aborted connections with requests still running after the drain timeout"
        );
    }
    reaper.abort();
    Ok(())
}

impl Acceptor {
    /// Accepts connections until the drain is over, and serves each in a task.
    async fn accept_all(self: &Arc<Self>, mut accepting: Accepting, kind: Listener) {
        while let Some((stream, peer)) = accepting.next().await {
            let proxies = &self.state.trusted_proxies;
            if kind.proxy_protocol == ProxyProtocol::Required && !proxies.trusts(peer.ip().to_canonical()) {
                tracing::debug!(%peer, "closed a connection of a peer that is not in http.trusted_proxies");
                continue;
            }
            let network = proxies.limited_network(peer);
            let Some(room) = self.table.make_room(network, Instant::now()) else {
                tracing::debug!(%peer, "closed a connection of an address with too many that are not idle");
                continue;
            };
            let permit = acquire(&self.permits, &self.table, room).await;
            let Some(permit) = permit else { break };
            let guard = self.table.insert(network, Instant::now());
            let open = OpenConnection::new(kind.is_tls);
            let acceptor = Arc::clone(self);
            tokio::spawn(async move {
                acceptor.serve_connection(stream, peer, kind, &guard).await;
                drop((guard, permit, open));
            });
        }
    }

    /// Serves one connection from its first byte to its last.
    async fn serve_connection(
        &self,
        mut stream: TcpStream,
        mut peer: SocketAddr,
        kind: Listener,
        guard: &ConnectionGuard,
    ) {
        set_socket_options(&stream);
        if kind.proxy_protocol == ProxyProtocol::Required {
            let client = proxy_protocol::read_client(&mut stream, peer);
            match unless_closing(&guard.connection, client).await {
                Some(Ok(client)) => {
                    let network = self.state.trusted_proxies.limited_network(client);
                    if !self.table.count_for(guard, network, Instant::now()) {
                        return tracing::debug!(%client, "closed a connection of an address with too many");
                    }
                    peer = client;
                }
                Some(Err(error)) => return tracing::debug!(%peer, %error, "closed a connection"),
                None => return,
            }
        }
        if kind.is_tls {
            // Boxed, so that connections over HTTP don't take the memory of a handshake.
            return Box::pin(self.serve_tls(stream, peer, guard)).await;
        }
        let security = if self.redirects_to_https { Security::RedirectToHttps } else { Security::Plain };
        let service = self.service(peer, security, guard);
        let fast_path = self.limits.fast_path;
        serve_requests(&self.servers, fast_path, stream, Protocol::Unknown, service, guard).await;
    }

    async fn serve_tls(&self, stream: TcpStream, peer: SocketAddr, guard: &ConnectionGuard) {
        let Some(tls) = &self.state.tls else { return };
        // Boxed, so that its memory is released when the handshake is done.
        let handshake = Box::pin(tls::accept(tls, &self.state, stream));
        let Some(Some(accepted)) = unless_closing(&guard.connection, handshake).await else { return };
        let tls::Accepted { stream, certificate } = accepted;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let protocol = if is_http2 { Protocol::Http2 } else { Protocol::Unknown };
        let service = self.service(peer, Security::Tls(certificate), guard);
        serve_requests(&self.servers, self.limits.fast_path, stream, protocol, service, guard).await;
    }

    fn service(&self, peer: SocketAddr, security: Security, guard: &ConnectionGuard) -> EdgeService {
        let connection = Arc::clone(&guard.connection);
        EdgeService::new(&self.state, &self.router, connection, peer, security, self.limits.body_timeout)
    }
}

/// Waits for the permit of a new connection. At the limit, closes the connection that is idle longest, unless one of the same
/// address is being closed already. Further connections wait in the system's accept queue.
async fn acquire(
    permits: &Arc<Semaphore>,
    table: &ConnectionTable,
    mut room: Room,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
        return Some(permit);
    }
    loop {
        if room == Room::Free {
            table.close_idlest(Instant::now());
        }
        // If none was idle, one may be by then.
        room = Room::Free;
        let permit = tokio::time::timeout(CLOSE_INTERVAL, Arc::clone(permits).acquire_owned()).await;
        if let Ok(permit) = permit {
            return permit.ok();
        }
    }
}

async fn reap_idle(table: Arc<ConnectionTable>, limits: Connections) {
    let shortest = limits.header_timeout.min(limits.idle_timeout);
    let mut ticks = tokio::time::interval(shortest / CHECKS_PER_TIMEOUT);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        table.reap_idle(Instant::now());
    }
}
