//! The number of open connections of each listener.

use std::sync::atomic::{AtomicU32, Ordering};

use service::metrics::Series;

static HTTP: AtomicU32 = AtomicU32::new(0);
static HTTPS: AtomicU32 = AtomicU32::new(0);

/// An open connection, which is counted until dropped.
pub(crate) struct OpenConnection(&'static AtomicU32);

impl OpenConnection {
    pub(crate) fn new(is_tls: bool) -> Self {
        let count = if is_tls { &HTTPS } else { &HTTP };
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn read() -> Vec<Series> {
    let series = |(listener, count): (_, &AtomicU32)| {
        (vec![("listener", listener)], f64::from(count.load(Ordering::Relaxed)))
    };
    [("http", &HTTP), ("https", &HTTPS)].map(series).to_vec()
}
