//! Who is connected: so many at a time, nobody for nothing, and all of them asked to go when the edge ends.
//!
//! hyper watches each connection with a timer of its own and, as far as it was asked to, for nothing else: a
//! connection that says nothing at all, or an HTTP/2 one that goes idle, would stay for ever. Here one round every
//! moment looks at all of them, and a request costs its connection no timer but one step of a counter.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::Notify;

use crate::config::Connections;

/// Slower than this nobody reads: a tenth of a bad modem.
const TAKEN_PER_SECOND_MIN: u64 = 500;
const STAY: u8 = 0;
const LEAVE: u8 = 1;
const CUT: u8 = 2;

/// One connection's place.
#[derive(Default)]
pub(crate) struct Connection {
    /// Requests begun.
    begun: AtomicU64,
    /// Bytes of answers that the system has taken, to send them on.
    taken: AtomicU64,
    /// Answers under way that come from behind.
    busy: AtomicUsize,
    wish: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

/// What a connection is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Disposition {
    /// Go on.
    Stay,
    /// End once what is under way is answered.
    Leave,
    /// End at once.
    Cut,
}

impl Connection {
    /// A request has begun.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// So many bytes more of answers were taken.
    pub(crate) fn record_written(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// An answer is under way, and takes its time.
    pub(crate) fn begin_response(self: &Arc<Self>) -> ActiveResponse {
        self.busy.fetch_add(1, Ordering::Relaxed);
        ActiveResponse(Arc::clone(self))
    }

    /// What the connection is to do; its task is woken when that changes.
    pub(crate) fn wish(&self, known: &mut Option<Waker>, cx: &Context<'_>) -> Disposition {
        if !known.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *known = Some(cx.waker().clone());
            *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        }
        match self.wish.load(Ordering::SeqCst) {
            STAY => Disposition::Stay,
            LEAVE => Disposition::Leave,
            _ => Disposition::Cut,
        }
    }

    fn tell(&self, wish: u8) {
        if self.wish.fetch_max(wish, Ordering::SeqCst) < wish
            && let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner)
        {
            waker.wake_by_ref();
        }
    }
}

/// Keeps a seat busy while it lives.
pub(crate) struct ActiveResponse(Arc<Connection>);

impl ActiveResponse {
    /// From now on as often as this body has to be waited for.
    pub(crate) fn while_coming<B>(self, body: B) -> TrackedBody<B> {
        TrackedBody { body, seat: Arc::clone(&self.0), coming: None }
    }
}

impl Drop for ActiveResponse {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body that keeps a seat busy while more of it is to come from behind. What has come and isn't taken, as by a visitor
/// over HTTP/2 who has closed the window, is not our work.
pub(crate) struct TrackedBody<B> {
    body: B,
    seat: Arc<Connection>,
    coming: Option<ActiveResponse>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() {
            self.coming = None;
        } else if self.coming.is_none() {
            self.coming = Some(self.seat.begin_response());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// All who are connected.
pub(crate) struct ConnectionTable {
    limits: Connections,
    taken: Mutex<Taken>,
    /// Told when the last one leaves.
    empty: Notify,
}

#[derive(Default)]
struct Taken {
    next: u64,
    by_number: HashMap<u64, Observed>,
}

/// A seat and what the last rounds saw of it.
struct Observed {
    seat: Arc<Connection>,
    begun: u64,
    taken: u64,
    quiet_since: Instant,
}

impl ConnectionTable {
    pub(crate) fn new(limits: Connections) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default(), empty: Notify::new() })
    }

    /// A seat, left when the guard is dropped.
    pub(crate) fn take(self: &Arc<Self>, now: Instant) -> ConnectionGuard {
        let seat = Arc::new(Connection::default());
        let mut taken = self.taken();
        taken.next += 1;
        let number = taken.next;
        let observed = Observed { seat: Arc::clone(&seat), begun: 0, taken: 0, quiet_since: now };
        taken.by_number.insert(number, observed);
        ConnectionGuard { seats: Arc::clone(self), number, seat }
    }

    /// One round: who has been quiet for too long is asked to leave, and who then stays is cut off.
    pub(crate) fn reap_idle(&self, now: Instant) {
        for observed in self.taken().by_number.values_mut() {
            let begun = observed.seat.begun.load(Ordering::Relaxed);
            if begun != observed.begun || observed.seat.busy.load(Ordering::Relaxed) > 0 {
                (observed.begun, observed.quiet_since) = (begun, now);
                observed.taken = observed.seat.taken.load(Ordering::Relaxed);
                continue;
            }
            // Whoever takes what was answered is not quiet, if it is more than now and then a byte.
            let taken = observed.seat.taken.load(Ordering::Relaxed);
            let bought = Duration::from_millis((taken - observed.taken) * 1_000 / TAKEN_PER_SECOND_MIN);
            observed.taken = taken;
            observed.quiet_since = now.min(observed.quiet_since + bought);
            let quiet = now.saturating_duration_since(observed.quiet_since);
            let header = self.limits.header_timeout;
            // Nothing was ever asked for: its first header should be here by now.
            let (leave, cut) = if begun == 0 {
                (header, header)
            } else {
                let idle = self.limits.idle_timeout;
                // One more header may be half here, or an answer lie in the way to who reads it.
                (idle, idle * 2)
            };
            if quiet >= cut {
                observed.seat.tell(CUT);
            } else if quiet >= leave {
                observed.seat.tell(LEAVE);
            }
        }
    }

    /// Asks everybody to leave once answered, and waits for that; who is still there after `patience` is cut off.
    /// Gives how many that were.
    pub(crate) async fn clear(&self, patience: Duration) -> usize {
        self.tell_all(LEAVE);
        if tokio::time::timeout(patience, self.emptied()).await.is_ok() {
            return 0;
        }
        self.tell_all(CUT)
    }

    async fn emptied(&self) {
        loop {
            let told = self.empty.notified();
            if self.taken().by_number.is_empty() {
                return;
            }
            told.await;
        }
    }

    fn tell_all(&self, wish: u8) -> usize {
        let taken = self.taken();
        taken.by_number.values().for_each(|observed| observed.seat.tell(wish));
        taken.by_number.len()
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A seat that is taken.
pub(crate) struct ConnectionGuard {
    seats: Arc<ConnectionTable>,
    number: u64,
    pub(crate) seat: Arc<Connection>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        taken.by_number.remove(&self.number);
        if taken.by_number.is_empty() {
            self.seats.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::StreamBody;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The seat of somebody who was answered, and a minute of rounds, in each second of which something happens.
    fn told_after_a_minute(mut happens: impl FnMut(&Arc<Connection>)) -> u8 {
        let limits = Connections {
            max: 1,
            streams: 1,
            header_bytes: 1,
            quick_lane: true,
            header_timeout: 5 * SECOND,
            idle_timeout: 10 * SECOND,
            body_patience: SECOND,
        };
        let (seats, mut now) = (ConnectionTable::new(limits), Instant::now());
        let seated = seats.take(now);
        seated.seat.begin();
        seats.reap_idle(now);
        for _ in 0..60 {
            now += SECOND;
            happens(&seated.seat);
            seats.reap_idle(now);
        }
        seated.seat.wish.load(Ordering::SeqCst)
    }

    #[test]
    fn who_takes_an_answer_slowly_stays_and_who_takes_nothing_or_next_to_it_is_cut() {
        let taking = |bytes| told_after_a_minute(|seat| seat.record_written(bytes));
        assert_eq!([500, 1 << 20, 0, 50].map(taking), [STAY, STAY, CUT, CUT]);
    }

    #[test]
    fn who_waits_for_an_answer_stays_and_who_does_not_take_what_has_come_is_cut() {
        let mut context = Context::from_waker(Waker::noop());
        let mut slow = None;
        let waits = told_after_a_minute(|seat| {
            let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
            let body = slow.get_or_insert_with(|| seat.begin_response().while_coming(never));
            assert!(Pin::new(body).poll_frame(&mut context).is_pending());
        });
        assert_eq!(waits, STAY);
        let mut ready = None;
        let closed = told_after_a_minute(|seat| {
            let frame = futures::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x")))]);
            ready.get_or_insert_with(|| {
                let mut body = seat.begin_response().while_coming(StreamBody::new(frame));
                assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
                body
            });
        });
        assert_eq!(closed, CUT);
    }
}
