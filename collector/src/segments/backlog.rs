//! The unsent bytes on disk, and their limit.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use service::Check;

use crate::metrics;

/// Counts the bytes of segments that are not in ClickHouse yet. Clones share the count.
#[derive(Clone)]
pub(super) struct Backlog(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    bytes: AtomicU64,
    total_added: AtomicU64,
    max_bytes: u64,
    is_full: AtomicBool,
    check: Check,
}

impl Backlog {
    pub(super) fn new(folder: &Path, bytes: u64, max_bytes: u64, check: Check) -> Self {
        let backlog = Self(Arc::new(Shared {
            folder: folder.to_owned(),
            bytes: bytes.into(),
            total_added: 0.into(),
            max_bytes,
            is_full: false.into(),
            check,
        }));
        #[expect(clippy::cast_precision_loss, reason = "a gauge needs no more than 53 bits")]
        metrics::SEGMENT_MAX_BYTES.set(max_bytes as f64, &[]);
        backlog.0.check.ok();
        backlog.report(bytes);
        backlog
    }

    /// Whether events must be dropped until some are sent.
    pub(super) fn is_full(&self) -> bool {
        self.0.is_full.load(Ordering::Relaxed)
    }

    /// Bytes added since this process started.
    pub(super) fn total_added(&self) -> u64 {
        self.0.total_added.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.0.total_added.fetch_add(bytes, Ordering::Relaxed);
        self.report(self.0.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes);
    }

    pub(super) fn remove(&self, bytes: u64) {
        self.report(self.0.bytes.fetch_sub(bytes, Ordering::Relaxed) - bytes);
    }

    fn report(&self, bytes: u64) {
        #[expect(clippy::cast_precision_loss, reason = "a gauge needs no more than 53 bits")]
        metrics::SEGMENT_UNSENT_BYTES.set(bytes as f64, &[]);
        // One system call, beside the sync of a group or the insert of a segment.
        if let Ok(disk) = rustix::fs::statvfs(&self.0.folder) {
            #[expect(clippy::cast_precision_loss, reason = "a gauge needs no more than 53 bits")]
            metrics::SEGMENT_FREE_BYTES.set((disk.f_bavail * disk.f_frsize) as f64, &[]);
        }
        let is_full = bytes >= self.0.max_bytes;
        match (self.0.is_full.swap(is_full, Ordering::Relaxed), is_full) {
            (false, true) => {
                tracing::error!(
                    bytes,
                    "the backlog is full: events are dropped until ClickHouse accepts some"
                );
                self.0.check.failed("full: ClickHouse has not accepted events for too long");
            }
            (true, false) => {
                tracing::info!(bytes, "the backlog is no longer full");
                self.0.check.ok();
            }
            _ => {}
        }
    }
}
