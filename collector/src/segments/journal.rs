//! Writes events to segments by group commit: events that arrive during a flush share the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use contract::events::Event;
use domain::tracking::Dropped;
use service::{Check, Clock, Rng};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::backlog::Backlog;
use super::folder::{Folder, OpenSegment, SealedSegment};
use super::preallocated::Preallocated;
use super::record;
use crate::metrics;

/// Maximum number of events in one flush.
const MAX_GROUP_EVENTS: usize = 4_096;

/// Minimum time from one flush to the next. A single event does not wait; under load each event waits this much longer,
/// which saves the CPU and disk time of many small flushes.
const FLUSH_INTERVAL: Duration = Duration::from_millis(2);
/// How soon sealing a segment is tried again after a failure.
const SEAL_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// A group of this size needs to wait only for `MIN_FLUSH_INTERVAL`.
const LARGE_GROUP_EVENTS: usize = 32;
const MIN_FLUSH_INTERVAL: Duration = Duration::from_micros(500);

/// Limits of segments by size and age.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// A segment is sealed at this age, unless older segments wait to be inserted.
    pub(crate) seal_after: Duration,
    /// A segment is sealed at this size in any case.
    pub(crate) max_segment_bytes: u64,
    /// Events are dropped while this much is on disk.
    pub(crate) max_unsent_bytes: u64,
}

/// Accepts events for writing. Cheap to clone; the writer ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Journal {
    entries: mpsc::Sender<Entry>,
    backlog: Backlog,
}

/// An event that the writer has accepted.
pub(crate) struct PendingWrite(oneshot::Receiver<bool>);

struct Entry {
    record: Vec<u8>,
    written: oneshot::Sender<bool>,
}

/// The only task that writes. It blocks on the disk, so it runs on a thread of its own.
pub(crate) struct Writer {
    folder: Arc<Folder>,
    preallocated: Preallocated,
    limits: Limits,
    clock: Clock,
    rng: Rng,
    check: Check,
    entries: mpsc::Receiver<Entry>,
    open: Option<(OpenSegment, Instant)>,
    flushed_at: Instant,
    /// Size of the last sealed segment.
    last_bytes: u64,
    /// Segments that could not be sealed, oldest first, and the time of the next attempt.
    unsealed: VecDeque<OpenSegment>,
    seal_again_at: Instant,
    /// Segments that the shipper has not received yet, oldest first.
    sealed: VecDeque<SealedSegment>,
    shipper: mpsc::Sender<SealedSegment>,
    backlog: Backlog,
}

impl Journal {
    /// Returns the handle, the task to spawn, and the receiver of sealed segments.
    pub(super) fn new(
        (folder, leftovers): (Folder, Vec<SealedSegment>),
        backlog: Backlog,
        limits: Limits,
        (clock, rng): (Clock, Rng),
        check: Check,
    ) -> std::io::Result<(Self, Writer, mpsc::Receiver<SealedSegment>)> {
        let (entries, incoming) = mpsc::channel(2 * MAX_GROUP_EVENTS);
        // A buffer of one segment: while the shipper is behind, the writer lets the open segment grow instead.
        let (shipper, outgoing) = mpsc::channel(1);
        check.ok();
        let folder = Arc::new(folder);
        let preallocated = Preallocated::new(Arc::clone(&folder), clock.clone(), rng.clone())?;
        let writer = Writer {
            folder,
            preallocated,
            limits,
            clock,
            rng,
            check,
            entries: incoming,
            open: None,
            flushed_at: Instant::now(),
            last_bytes: 0,
            unsealed: VecDeque::new(),
            seal_again_at: Instant::now(),
            sealed: leftovers.into(),
            shipper,
            backlog: backlog.clone(),
        };
        Ok((Self { entries, backlog }, writer, outgoing))
    }

    /// Passes the event to the writer. It is written from then on, even if the result is dropped.
    pub(crate) async fn append(&self, event: &Event) -> Result<PendingWrite, Dropped> {
        if self.backlog.is_full() {
            return Err(Dropped::Full);
        }
        let record = record::encode(event).map_err(|_| Dropped::Unwritable)?;
        let (written, result) = oneshot::channel();
        self.entries.send(Entry { record, written }).await.map_err(|_| Dropped::Unwritable)?;
        Ok(PendingWrite(result))
    }
}

impl PendingWrite {
    /// Returns once the event is on disk.
    pub(crate) async fn written(self) -> Result<(), Dropped> {
        if self.0.await == Ok(true) { Ok(()) } else { Err(Dropped::Unwritable) }
    }
}

impl Writer {
    /// Writes until every [`Journal`] is dropped, then seals the open segment and passes on what the shipper accepts.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let mut group = Vec::with_capacity(MAX_GROUP_EVENTS);
        loop {
            let due_at = self.open.as_ref().map(|(_, opened)| *opened + self.limits.seal_after);
            let due = due_at.is_some_and(|due_at| due_at <= Instant::now());
            let shipper = self.shipper.clone();
            tokio::select! {
                received = self.entries.recv_many(&mut group, MAX_GROUP_EVENTS) => match received {
                    0 => break,
                    _ => self.write(&mut group),
                },
                () = tokio::time::sleep_until(due_at.unwrap_or_else(Instant::now)), if due_at.is_some() && !due => {}
                () = tokio::time::sleep_until(self.seal_again_at), if !self.unsealed.is_empty() => self.seal_again(),
                Ok(permit) = shipper.reserve(), if due || !self.sealed.is_empty() => {
                    if self.sealed.is_empty() {
                        self.seal();
                    }
                    if let Some(segment) = self.sealed.pop_front() {
                        permit.send(segment);
                    }
                }
            }
        }
        self.seal();
        self.seal_again();
        for segment in self.sealed {
            // After the shipper has ended, the next start sends the rest.
            let _left_on_disk = self.shipper.send(segment).await;
        }
        self.preallocated.end();
        Ok(())
    }

    fn write(&mut self, group: &mut Vec<Entry>) {
        self.collect_group(group);
        let records = group.iter().map(|entry| entry.record.as_slice()).collect::<Vec<_>>().concat();
        let started = Instant::now();
        let written = self.write_records(&records);
        metrics::GROUP_COMMIT_SECONDS.record(started.elapsed(), &[]);
        match &written {
            Ok(()) => {
                metrics::EVENTS_ACCEPTED.add(group.len() as u64, &[]);
                self.backlog.add(records.len() as u64);
                self.report_writable();
            }
            Err(error) => {
                tracing::error!(%error, events = group.len(), "writing events failed: they are dropped");
                self.check.failed(format!("not writable: {error}"));
            }
        }
        for entry in group.drain(..) {
            // The client may have disconnected; the event counts all the same.
            let _disconnected = entry.written.send(written.is_ok());
        }
        let full = self.open.as_ref().is_some_and(|(open, _)| open.bytes >= self.limits.max_segment_bytes);
        if full || written.is_err() {
            self.seal();
        }
        if written.is_err() {
            // The disk may be full: preallocate nothing until a segment was written again.
            self.last_bytes = 0;
        }
    }

    /// Waits until the next flush is due, and adds the events that arrive meanwhile.
    #[expect(
        clippy::disallowed_methods,
        reason = "half a millisecond at a time, below the resolution of the runtime's timer"
    )]
    fn collect_group(&mut self, group: &mut Vec<Entry>) {
        loop {
            while group.len() < MAX_GROUP_EVENTS
                && let Ok(entry) = self.entries.try_recv()
            {
                group.push(entry);
            }
            let interval = if group.len() < LARGE_GROUP_EVENTS { FLUSH_INTERVAL } else { MIN_FLUSH_INTERVAL };
            let wait = interval.saturating_sub(self.flushed_at.elapsed());
            if wait.is_zero() {
                break;
            }
            std::thread::sleep(wait.min(MIN_FLUSH_INTERVAL));
        }
        self.flushed_at = Instant::now();
    }

    fn write_records(&mut self, records: &[u8]) -> std::io::Result<()> {
        if self.open.as_ref().is_some_and(|(open, _)| !open.fits(records)) {
            self.seal();
        }
        let (open, _) = match &mut self.open {
            Some(open) => open,
            none => {
                let segment = match self.preallocated.take() {
                    Some(segment) => segment,
                    None => self.folder.create(self.rng.uuid_v7(self.clock.now()))?,
                };
                self.preallocated.request(self.last_bytes, self.limits.max_segment_bytes);
                none.insert((segment, Instant::now()))
            }
        };
        open.append(records)
    }

    /// Seals the open segment, if there is one.
    fn seal(&mut self) {
        let Some((open, _)) = self.open.take() else { return };
        self.last_bytes = open.bytes;
        match self.folder.seal(&open) {
            Ok(segment) => self.sealed.extend(segment),
            Err(error) => {
                tracing::error!(%error, segment = %open.id, "sealing a segment failed and is retried");
                self.check.failed(format!("a segment can't be sealed: {error}"));
                if self.unsealed.is_empty() {
                    self.seal_again_at = Instant::now() + SEAL_RETRY_INTERVAL;
                }
                self.unsealed.push_back(open);
            }
        }
    }

    /// Tries again to seal the segments that could not be sealed. After a restart they would be leftovers.
    fn seal_again(&mut self) {
        for open in std::mem::take(&mut self.unsealed) {
            match self.folder.seal(&open) {
                Ok(segment) => {
                    tracing::info!(segment = %open.id, "sealed a segment after a failure");
                    self.sealed.extend(segment);
                }
                Err(error) => {
                    tracing::debug!(%error, segment = %open.id, "sealing a segment failed again");
                    self.unsealed.push_back(open);
                }
            }
        }
        self.seal_again_at = Instant::now() + SEAL_RETRY_INTERVAL;
        self.report_writable();
    }

    fn report_writable(&self) {
        if self.unsealed.is_empty() {
            self.check.ok();
        }
    }
}
