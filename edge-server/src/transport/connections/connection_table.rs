//! Tracks open connections, limits them per address, closes idle ones, and drains all of them on shutdown.
//!
//! hyper only times the request head, and needs a timer per connection for that. A silent client, or an idle HTTP/2
//! connection, would hold its file descriptor forever. Here one background task checks all connections instead, and a
//! request costs its connection one counter increment and no timer. Addresses are counted only when a connection begins and
//! ends.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use service::{Drain, Draining};
use tokio::sync::Notify;

use super::connection::{ABORT, CLOSE_AFTER_RESPONSE, CLOSE_WHEN_IDLE, Connection};
use super::idle_list::IdleList;
use crate::config::Connections;

/// Read rate below which a client counts as idle: a tenth of a slow modem.
const BYTES_PER_SECOND_MIN: u64 = 500;
/// How a new connection got room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// The limit is not reached.
    Free,
    /// An idle connection is being closed for it.
    Replaced,
}

/// All open connections.
pub(crate) struct ConnectionTable {
    limits: Connections,
    draining: Draining,
    entries: Mutex<Entries>,
    /// Notified when the last connection closes.
    empty: Notify,
}

#[derive(Default)]
struct Entries {
    next_id: u64,
    by_id: HashMap<u64, Entry>,
    by_network: HashMap<IpAddr, Group>,
    idle: IdleList,
    /// The disposition of new connections.
    disposition: u8,
}

/// The open connections of one network, except those that are being closed for a newer one.
#[derive(Default)]
struct Group {
    ids: HashSet<u64>,
    idle: IdleList,
}

/// A connection and its counters at the last check.
struct Entry {
    connection: Arc<Connection>,
    /// The network that the connection counts for.
    network: Option<IpAddr>,
    requests: u64,
    written: u64,
    idle_since: Instant,
}

impl Entry {
    /// Reads the counters. Returns the start of the idle time, or `None` while the server is producing a response, and once
    /// the connection is aborted.
    fn idle_since(&mut self, now: Instant) -> Option<Instant> {
        let requests = self.connection.requests.load(Ordering::Relaxed);
        let written = self.connection.written.load(Ordering::Relaxed);
        let is_active = self.connection.active.load(Ordering::Relaxed) > 0;
        if requests != self.requests || is_active {
            (self.requests, self.idle_since) = (requests, now);
        } else {
            // A client that reads its response is not idle, unless it reads slower than the minimum rate.
            let credit = Duration::from_millis((written - self.written) * 1_000 / BYTES_PER_SECOND_MIN);
            self.idle_since = now.min(self.idle_since + credit);
        }
        self.written = written;
        let is_aborted = self.connection.disposition.load(Ordering::SeqCst) == ABORT;
        (!is_active && !is_aborted).then_some(self.idle_since)
    }
}

impl Entries {
    /// Closes the connection of a network that is idle longest. Returns `false` if none is idle.
    fn close_idlest_of(&mut self, network: IpAddr, now: Instant) -> bool {
        let Some(group) = self.by_network.get_mut(&network) else { return false };
        let by_id = &mut self.by_id;
        let mut idle_since = |id: u64| by_id.get_mut(&id)?.idle_since(now);
        let idlest = group.idle.pop(&mut idle_since).or_else(|| {
            group.idle.fill(group.ids.iter().filter_map(|id| Some((idle_since(*id)?, *id))));
            group.idle.pop(&mut idle_since)
        });
        idlest.is_some_and(|id| self.close(id))
    }

    /// Closes the connection that is idle longest. Returns `false` if none is idle.
    fn close_idlest(&mut self, now: Instant) -> bool {
        let by_id = &mut self.by_id;
        let idlest = self.idle.pop(|id| by_id.get_mut(&id)?.idle_since(now)).or_else(|| {
            self.idle.fill(by_id.iter_mut().filter_map(|(id, entry)| Some((entry.idle_since(now)?, *id))));
            self.idle.pop(|id| by_id.get_mut(&id)?.idle_since(now))
        });
        idlest.is_some_and(|id| self.close(id))
    }

    /// Aborts a connection. It no longer counts for its network, although its task has yet to end.
    fn close(&mut self, id: u64) -> bool {
        let Some(entry) = self.by_id.get_mut(&id) else { return false };
        entry.connection.set_disposition(ABORT);
        let network = entry.network.take();
        self.leave(id, network);
        true
    }

    fn leave(&mut self, id: u64, network: Option<IpAddr>) {
        let Some(network) = network else { return };
        if let Some(group) = self.by_network.get_mut(&network) {
            group.ids.remove(&id);
            if group.ids.is_empty() {
                self.by_network.remove(&network);
            }
        }
    }
}

impl ConnectionTable {
    pub(crate) fn new(limits: Connections, draining: Draining) -> Arc<Self> {
        Arc::new(Self { limits, draining, entries: Mutex::default(), empty: Notify::new() })
    }

    /// Makes room for a connection of a network: at the limit, closes the network's connection that is idle longest. Returns
    /// `None` if none is idle. `network` is the client's, if its connections are limited.
    pub(crate) fn make_room(&self, network: Option<IpAddr>, now: Instant) -> Option<Room> {
        let (Some(network), Some(limit)) = (network, self.limits.address_limit()) else {
            return Some(Room::Free);
        };
        let mut entries = self.entries();
        let open = entries.by_network.get(&network).map_or(0, |group| group.ids.len());
        if open < limit {
            return Some(Room::Free);
        }
        entries.close_idlest_of(network, now).then_some(Room::Replaced)
    }

    /// Adds a connection, which is removed when the guard is dropped. It counts for `network`.
    pub(crate) fn insert(self: &Arc<Self>, network: Option<IpAddr>, now: Instant) -> ConnectionGuard {
        let connection = Arc::new(Connection::new(&self.draining));
        let network = network.filter(|_| self.limits.address_limit().is_some());
        let mut entries = self.entries();
        connection.set_disposition(entries.disposition);
        entries.next_id += 1;
        let id = entries.next_id;
        if let Some(network) = network {
            entries.by_network.entry(network).or_default().ids.insert(id);
        }
        let entry =
            Entry { connection: Arc::clone(&connection), network, requests: 0, written: 0, idle_since: now };
        entries.by_id.insert(id, entry);
        ConnectionGuard { table: Arc::clone(self), id, connection }
    }

    /// Makes an open connection count for the network of its client, which a proxy has named. Returns `false` if the network
    /// has too many connections and none is idle.
    pub(crate) fn count_for(&self, guard: &ConnectionGuard, network: Option<IpAddr>, now: Instant) -> bool {
        let has_room = self.make_room(network, now).is_some();
        let mut entries = self.entries();
        if let (true, Some(network), Some(_)) = (has_room, network, self.limits.address_limit()) {
            entries.by_network.entry(network).or_default().ids.insert(guard.id);
            entries.by_id.entry(guard.id).and_modify(|entry| entry.network = Some(network));
        }
        has_room
    }

    /// Closes the connection that is idle longest, if one is.
    pub(crate) fn close_idlest(&self, now: Instant) {
        self.entries().close_idlest(now);
    }

    /// Checks all connections once: closes those that are idle for too long, and aborts those that do not react.
    pub(crate) fn reap_idle(&self, now: Instant) {
        for entry in self.entries().by_id.values_mut() {
            let Some(idle_since) = entry.idle_since(now) else { continue };
            let idle = now.saturating_duration_since(idle_since);
            let header_timeout = self.limits.header_timeout;
            // Without any request so far, the first request head must have arrived by now.
            let (close_after, abort_after) = if entry.requests == 0 {
                (header_timeout, header_timeout)
            } else {
                let idle_timeout = self.limits.idle_timeout;
                // Half a request head may have arrived, or a response may be on its way to the client.
                (idle_timeout, idle_timeout * 2)
            };
            if idle >= abort_after {
                entry.connection.set_disposition(ABORT);
            } else if idle >= close_after {
                entry.connection.set_disposition(CLOSE_WHEN_IDLE);
            }
        }
    }

    /// Makes the next response of every connection its last, also of connections to come.
    pub(crate) fn begin_drain(&self) {
        self.entries().disposition = CLOSE_AFTER_RESPONSE;
        self.set_disposition_of_all(CLOSE_AFTER_RESPONSE);
    }

    /// Closes all connections once their requests are answered, and aborts those still open at the deadline of the drain.
    /// Returns the number of aborted connections.
    pub(crate) async fn drain(&self) -> usize {
        let now = Instant::now();
        for entry in self.entries().by_id.values() {
            let is_new = now.saturating_duration_since(entry.idle_since) < Drain::FIRST_REQUEST_TIMEOUT;
            if entry.connection.has_requests() || !is_new {
                entry.connection.set_disposition(CLOSE_WHEN_IDLE);
            }
        }
        let closing = async {
            let empty = self.wait_until_empty();
            if tokio::time::timeout(Drain::FIRST_REQUEST_TIMEOUT, empty).await.is_err() {
                self.set_disposition_of_all(CLOSE_WHEN_IDLE);
                self.wait_until_empty().await;
            }
        };
        if tokio::time::timeout_at(self.draining.deadline(), closing).await.is_ok() {
            return 0;
        }
        self.set_disposition_of_all(ABORT)
    }

    async fn wait_until_empty(&self) {
        loop {
            let notified = self.empty.notified();
            if self.entries().by_id.is_empty() {
                return;
            }
            notified.await;
        }
    }

    fn set_disposition_of_all(&self, disposition: u8) -> usize {
        let entries = self.entries();
        entries.by_id.values().for_each(|entry| entry.connection.set_disposition(disposition));
        entries.by_id.len()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection. Dropping the guard removes it from the table.
pub(crate) struct ConnectionGuard {
    table: Arc<ConnectionTable>,
    id: u64,
    pub(crate) connection: Arc<Connection>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut entries = self.table.entries();
        let network = entries.by_id.remove(&self.id).and_then(|entry| entry.network);
        entries.leave(self.id, network);
        if entries.by_id.is_empty() {
            self.table.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use bytes::Bytes;
    use http_body::{Body, Frame};
    use http_body_util::StreamBody;
    use service::Shutdown;

    use super::super::connection::KEEP_OPEN;
    use super::*;
    use crate::transport::tracked_body::TrackedBody;

    const SECOND: Duration = Duration::from_secs(1);

    fn endless() -> Draining {
        Draining::new(Drain::default(), &Shutdown::new())
    }

    /// Returns the disposition of a connection that sent one request, after a minute of checks, one a second.
    fn disposition_after_a_minute(mut every_second: impl FnMut(&Arc<Connection>)) -> u8 {
        let limits = Connections {
            max: 1,
            max_per_address: 0,
            max_streams: 1,
            max_header_bytes: 1,
            fast_path: true,
            header_timeout: 5 * SECOND,
            idle_timeout: 10 * SECOND,
            body_timeout: SECOND,
        };
        let (table, mut now) = (ConnectionTable::new(limits, endless()), Instant::now());
        let guard = table.insert(None, now);
        guard.connection.record_request();
        table.reap_idle(now);
        for _ in 0..60 {
            now += SECOND;
            every_second(&guard.connection);
            table.reap_idle(now);
        }
        guard.connection.disposition.load(Ordering::SeqCst)
    }

    #[test]
    fn keeps_slow_readers_and_aborts_clients_that_hardly_read() {
        let reading = |bytes| disposition_after_a_minute(|connection| connection.record_written(bytes));
        assert_eq!([500, 1 << 20, 0, 50].map(reading), [KEEP_OPEN, KEEP_OPEN, ABORT, ABORT]);
    }

    #[test]
    fn keeps_connections_that_wait_for_the_server_and_aborts_those_that_do_not_read() {
        let mut context = Context::from_waker(Waker::noop());
        let mut slow = None;
        let waiting = disposition_after_a_minute(|connection| {
            let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
            let body =
                slow.get_or_insert_with(|| TrackedBody::new(never, &connection.begin_response(), None));
            assert!(Pin::new(body).poll_frame(&mut context).is_pending());
        });
        assert_eq!(waiting, KEEP_OPEN);
        let mut ready = None;
        let not_reading = disposition_after_a_minute(|connection| {
            let frame = futures::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x")))]);
            ready.get_or_insert_with(|| {
                let mut body = TrackedBody::new(StreamBody::new(frame), &connection.begin_response(), None);
                assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
                body
            });
        });
        assert_eq!(not_reading, ABORT);
    }
}
