//! Preallocates segment files under load.
//!
//! The `fdatasync` of a growing file waits for the file system's journal, and so for everything else that is written to
//! the disk. A file that was filled with zeros before only changes its content: while ClickHouse merged, its flush took
//! at most 65 ms where that of a growing file took 450 ms.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use service::{Clock, Rng};

use super::folder::{Folder, OpenSegment};

/// Below this size segments are flushed too rarely for a preallocation to pay off.
const MIN_BYTES: u64 = 64 << 10;

/// A thread that preallocates segments. At most one is ready and one in progress.
pub(super) struct Preallocated {
    clock: Clock,
    requests: SyncSender<u64>,
    ready: Receiver<OpenSegment>,
    thread: JoinHandle<()>,
}

impl Preallocated {
    pub(super) fn new(folder: Arc<Folder>, clock: Clock, rng: Rng) -> io::Result<Self> {
        // Without a buffer, only an idle thread accepts a request.
        let (requests, received_requests) = sync_channel::<u64>(0);
        let (finished, ready) = sync_channel(1);
        let thread_clock = clock.clone();
        let preallocate = move || {
            for bytes in received_requests {
                let created = folder.create_filled(rng.uuid_v7(thread_clock.now()), bytes);
                match created.map(|segment| finished.send(segment)) {
                    Ok(Ok(())) => {}
                    Ok(Err(SendError(unused))) => return unused.discard(),
                    Err(error) => {
                        tracing::debug!(%error, "preallocating a segment failed: the next one grows");
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("preallocate".to_owned()).spawn(preallocate)?;
        Ok(Self { clock, requests, ready, thread })
    }

    /// Requests a segment of twice the size of the last one, unless one is in progress.
    pub(super) fn request(&self, last_bytes: u64, max_bytes: u64) {
        if last_bytes >= MIN_BYTES {
            let _in_progress = self.requests.try_send((2 * last_bytes).min(max_bytes));
        }
    }

    /// Returns a segment if one is ready.
    pub(super) fn take(&self) -> Option<OpenSegment> {
        let mut segment = self.ready.try_recv().ok()?;
        segment.since = self.clock.now();
        Some(segment)
    }

    /// Ends the thread and deletes unused segments.
    pub(super) fn end(self) {
        drop(self.requests);
        while let Ok(segment) = self.ready.recv() {
            segment.discard();
        }
        let _panicked = self.thread.join();
    }
}
