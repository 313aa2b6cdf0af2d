//! How much waits on the disk, and whether there is room for more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use service::{Check, metrics};

/// Bytes in segments that ClickHouse doesn't have yet, against what they may be. Clones share it.
#[derive(Clone)]
pub(super) struct Backlog(Arc<Shared>);

struct Shared {
    bytes: AtomicU64,
    /// Bytes that ever came.
    came: AtomicU64,
    max_bytes: u64,
    full: AtomicBool,
    check: Check,
}

impl Backlog {
    pub(super) fn new(bytes: u64, max_bytes: u64, check: Check) -> Self {
        let backlog = Self(Arc::new(Shared {
            bytes: bytes.into(),
            came: 0.into(),
            max_bytes,
            full: false.into(),
            check,
        }));
        backlog.0.check.ok();
        backlog.report(bytes);
        backlog
    }

    /// Whether events must be dropped until ClickHouse has taken some.
    pub(super) fn is_full(&self) -> bool {
        self.0.full.load(Ordering::Relaxed)
    }

    /// Bytes that came since this began.
    pub(super) fn came(&self) -> u64 {
        self.0.came.load(Ordering::Relaxed)
    }

    pub(super) fn taken(&self, bytes: u64) {
        self.0.came.fetch_add(bytes, Ordering::Relaxed);
        self.report(self.0.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes);
    }

    pub(super) fn freed(&self, bytes: u64) {
        self.report(self.0.bytes.fetch_sub(bytes, Ordering::Relaxed) - bytes);
    }

    fn report(&self, bytes: u64) {
        #[expect(clippy::cast_precision_loss, reason = "a gauge needs no more than 53 bits")]
        metrics::gauge("collector_segment_unsent_bytes").set(bytes as f64, &[]);
        let full = bytes >= self.0.max_bytes;
        match (self.0.full.swap(full, Ordering::Relaxed), full) {
            (false, true) => {
                tracing::error!(
                    bytes,
                    "no room for unsent events: further ones are dropped until ClickHouse takes some"
                );
                self.0.check.failed("full: ClickHouse has not taken events for too long");
            }
            (true, false) => {
                tracing::info!(bytes, "there is room for events again");
                self.0.check.ok();
            }
            _ => {}
        }
    }
}
