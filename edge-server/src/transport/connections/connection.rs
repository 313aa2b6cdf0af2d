//! The state of one connection, shared between its task and the table.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use service::{Draining, EarlyRequest};

pub(super) const KEEP_OPEN: u8 = 0;
pub(super) const CLOSE_AFTER_RESPONSE: u8 = 1;
pub(super) const CLOSE_WHEN_IDLE: u8 = 2;
pub(super) const ABORT: u8 = 3;

/// The counters of one connection, shared between its task and the table.
pub(crate) struct Connection {
    draining: Draining,
    /// Requests received.
    pub(super) requests: AtomicU64,
    /// Response bytes that the operating system accepted.
    pub(super) written: AtomicU64,
    /// Responses that the server is still producing.
    pub(super) active: AtomicUsize,
    pub(super) disposition: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

/// Tells a connection's task to go on or to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Disposition {
    KeepOpen,
    /// Go on to accept requests, and close after the next response.
    CloseAfterResponse,
    /// Close once the requests in progress are answered.
    CloseWhenIdle,
    /// Close at once.
    Abort,
}

impl Connection {
    pub(super) fn new(draining: &Draining) -> Self {
        Self {
            draining: draining.clone(),
            requests: AtomicU64::default(),
            written: AtomicU64::default(),
            active: AtomicUsize::default(),
            disposition: AtomicU8::default(),
            waker: Mutex::default(),
        }
    }

    /// Counts a request that the drain waits for, until the result is dropped. One that is answered from memory needs none.
    pub(crate) fn begin_request(&self) -> Option<EarlyRequest> {
        self.draining.begin_request()
    }

    /// Records that a request has arrived.
    pub(crate) fn record_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether a request has arrived.
    pub(crate) fn has_requests(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// Returns whether the next response is the last one.
    pub(crate) fn is_closing(&self) -> bool {
        self.disposition.load(Ordering::Relaxed) != KEEP_OPEN
    }

    /// Records that the operating system accepted `bytes` of a response.
    pub(crate) fn record_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Marks a response as active until the guard is dropped.
    pub(crate) fn begin_response(self: &Arc<Self>) -> ActiveResponse {
        self.active.fetch_add(1, Ordering::Relaxed);
        ActiveResponse(Arc::clone(self))
    }

    /// Returns the disposition. The task of `cx` is woken when it changes; `registered` is the waker of the last call.
    pub(crate) fn poll_disposition(&self, registered: &mut Option<Waker>, cx: &Context<'_>) -> Disposition {
        if !registered.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *registered = Some(cx.waker().clone());
            *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        }
        match self.disposition.load(Ordering::SeqCst) {
            KEEP_OPEN => Disposition::KeepOpen,
            CLOSE_AFTER_RESPONSE => Disposition::CloseAfterResponse,
            CLOSE_WHEN_IDLE => Disposition::CloseWhenIdle,
            _ => Disposition::Abort,
        }
    }

    /// Raises the disposition; it is never lowered.
    pub(super) fn set_disposition(&self, disposition: u8) {
        if self.disposition.fetch_max(disposition, Ordering::SeqCst) < disposition
            && let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner)
        {
            waker.wake_by_ref();
        }
    }
}

/// Keeps a connection active until dropped.
pub(crate) struct ActiveResponse(Arc<Connection>);

impl ActiveResponse {
    /// Returns the connection that the response belongs to.
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for ActiveResponse {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}
