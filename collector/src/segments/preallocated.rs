//! Files that are made ready before they are needed, under load.
//!
//! A file that grows is on disk only when the file system's journal is, and that waits for whatever else is being
//! written to the disk. One that was written full of zeros before stays as it is but for its content: while ClickHouse
//! merged, flushing it took 65 ms at worst where a growing one took 450 ms.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use service::{Clock, Rng};

use super::folder::{Folder, OpenSegment};

/// Smaller segments are seldom flushed, so that making them ready costs more than it preallocated.
const WORTHWHILE_BYTES: u64 = 64 << 10;

/// The next segments, made by a thread of its own: one that is ready, and one that is in the making.
pub(super) struct Preallocated {
    clock: Clock,
    orders: SyncSender<u64>,
    ready: Receiver<OpenSegment>,
    maker: JoinHandle<()>,
}

impl Preallocated {
    /// None is ready yet.
    pub(super) fn new(folder: Arc<Folder>, clock: Clock, rng: Rng) -> io::Result<Self> {
        // An order is taken only by a maker who has nothing to do.
        let (orders, ordered) = sync_channel::<u64>(0);
        let (hand_over, ready) = sync_channel(1);
        let now = clock.clone();
        let make = move || {
            for bytes in ordered {
                let made = folder.create_filled(rng.uuid_v7(now.now()), bytes);
                match made.map(|spare| hand_over.send(spare)) {
                    Ok(Ok(())) => {}
                    Ok(Err(SendError(unwanted))) => return unwanted.discard(),
                    Err(error) => tracing::debug!(%error, "no segment can be made ready: it will grow"),
                }
            }
        };
        let maker = thread::Builder::new().name("preallocated".to_owned()).spawn(make)?;
        Ok(Self { clock, orders, ready, maker })
    }

    /// Orders a segment for as much as twice what the last one held, unless one is in the making.
    pub(super) fn order(&self, last_bytes: u64, max_bytes: u64) {
        if last_bytes >= WORTHWHILE_BYTES {
            let _in_the_making = self.orders.try_send((2 * last_bytes).min(max_bytes));
        }
    }

    /// A segment, if one is ready.
    pub(super) fn take(&self) -> Option<OpenSegment> {
        let mut spare = self.ready.try_recv().ok()?;
        spare.since = self.clock.now();
        Some(spare)
    }

    /// Leaves nothing behind.
    pub(super) fn end(self) {
        drop(self.orders);
        while let Ok(spare) = self.ready.recv() {
            spare.discard();
        }
        let _panicked = self.maker.join();
    }
}
