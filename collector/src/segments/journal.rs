//! Writes events into segments, many at a time: whatever arrives while the disk is busy shares the next flush.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use contract::events::Event;
use domain::tracking::Dropped;
use service::metrics::Counter;
use service::{Check, Clock, Rng, metrics};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::backlog::Backlog;
use super::folder::{Folder, OpenSegment, SealedSegment};
use super::preallocated::Preallocated;
use super::record;

/// Events of one flush; more wait for the next.
const GROUP_EVENTS_MAX: usize = 4_096;

/// From one flush to the next, at least. Whoever comes alone waits for nothing; of many, each waits this much longer, and
/// the processors and the disk that flushes of a few events would take are left to others.
const FLUSH_EVERY: Duration = Duration::from_millis(2);
/// So many needn't wait for that: …
const GROUP_EVENTS_ENOUGH: usize = 32;
/// … only for this.
const FLUSH_EVERY_MIN: Duration = Duration::from_micros(500);

/// How large and how old things may get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// A segment with anything in it is sealed at this age, if nothing older waits to be inserted, …
    pub(crate) seal_after: Duration,
    /// … and at this size in any case.
    pub(crate) max_segment_bytes: u64,
    /// With this much on disk, further events are dropped.
    pub(crate) max_unsent_bytes: u64,
}

/// Where events are handed in. Cheap to clone; the writer ends when the last clone is gone.
#[derive(Clone)]
pub(crate) struct Journal {
    entries: mpsc::Sender<Entry>,
    backlog: Backlog,
}

/// An event that is being written.
pub(crate) struct PendingWrite(oneshot::Receiver<bool>);

struct Entry {
    line: Vec<u8>,
    answer: oneshot::Sender<bool>,
}

/// The one task that writes. It waits for the disk where it runs: on a thread of its own.
pub(crate) struct Writer {
    folder: Arc<Folder>,
    preallocated: Preallocated,
    limits: Limits,
    clock: Clock,
    rng: Rng,
    check: Check,
    accepted: Counter,
    entries: mpsc::Receiver<Entry>,
    open: Option<(OpenSegment, Instant)>,
    flushed: Instant,
    /// What the last sealed segment held.
    last_bytes: u64,
    /// Sealed and not yet handed to the shipper, oldest first.
    sealed: VecDeque<SealedSegment>,
    shipper: mpsc::Sender<SealedSegment>,
    backlog: Backlog,
}

impl Journal {
    /// The handle, the task to spawn, and where sealed segments come out, one at a time.
    pub(super) fn new(
        (folder, leftovers): (Folder, Vec<SealedSegment>),
        backlog: Backlog,
        limits: Limits,
        (clock, rng): (Clock, Rng),
        check: Check,
    ) -> std::io::Result<(Self, Writer, mpsc::Receiver<SealedSegment>)> {
        let (entries, incoming) = mpsc::channel(2 * GROUP_EVENTS_MAX);
        // Backlog for one, so that the writer notices when the shipper is behind, and seals larger segments.
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
            accepted: metrics::counter("collector_events_accepted_total"),
            entries: incoming,
            open: None,
            flushed: Instant::now(),
            last_bytes: 0,
            sealed: leftovers.into(),
            shipper,
            backlog: backlog.clone(),
        };
        Ok((Self { entries, backlog }, writer, outgoing))
    }

    /// Takes the event. From then on it is written, whether or not somebody waits for that.
    pub(crate) async fn append(&self, event: &Event) -> Result<PendingWrite, Dropped> {
        if self.backlog.is_full() {
            return Err(Dropped::Full);
        }
        let line = record::encode(event).map_err(|_| Dropped::Unwritable)?;
        let (answer, written) = oneshot::channel();
        self.entries.send(Entry { line, answer }).await.map_err(|_| Dropped::Unwritable)?;
        Ok(PendingWrite(written))
    }
}

impl PendingWrite {
    /// Returns once the event is on disk.
    pub(crate) async fn written(self) -> Result<(), Dropped> {
        if self.0.await == Ok(true) { Ok(()) } else { Err(Dropped::Unwritable) }
    }
}

impl Writer {
    /// Writes until every [`Journal`] is gone, then seals what is open and hands over what the shipper takes.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let mut group = Vec::with_capacity(GROUP_EVENTS_MAX);
        loop {
            let due_at = self.open.as_ref().map(|(_, opened)| *opened + self.limits.seal_after);
            let due = due_at.is_some_and(|due_at| due_at <= Instant::now());
            let shipper = self.shipper.clone();
            tokio::select! {
                received = self.entries.recv_many(&mut group, GROUP_EVENTS_MAX) => match received {
                    0 => break,
                    _ => self.write(&mut group),
                },
                () = tokio::time::sleep_until(due_at.unwrap_or_else(Instant::now)), if due_at.is_some() && !due => {}
                Ok(hungry) = shipper.reserve(), if due || !self.sealed.is_empty() => {
                    if self.sealed.is_empty() {
                        self.seal();
                    }
                    if let Some(segment) = self.sealed.pop_front() {
                        hungry.send(segment);
                    }
                }
            }
        }
        self.seal();
        for segment in self.sealed {
            // A shipper that has given up has left the rest to the next start.
            let _left_on_disk = self.shipper.send(segment).await;
        }
        self.preallocated.end();
        Ok(())
    }

    fn write(&mut self, group: &mut Vec<Entry>) {
        self.gather(group);
        let lines = group.iter().map(|entry| entry.line.as_slice()).collect::<Vec<_>>().concat();
        let begun = Instant::now();
        let written = self.write_lines(&lines);
        metrics::histogram("collector_group_commit_seconds").record_elapsed(begun.elapsed(), &[]);
        match &written {
            Ok(()) => {
                self.accepted.add(group.len() as u64, &[]);
                self.backlog.taken(lines.len() as u64);
                self.check.ok();
            }
            Err(error) => {
                tracing::error!(%error, events = group.len(), "events could not be written and are dropped");
                self.check.failed(format!("not writable: {error}"));
            }
        }
        for entry in group.drain(..) {
            // Whoever asked may have hung up; the event counts all the same.
            let _hung_up = entry.answer.send(written.is_ok());
        }
        let full = self.open.as_ref().is_some_and(|(open, _)| open.bytes >= self.limits.max_segment_bytes);
        if full || written.is_err() {
            self.seal();
        }
        if written.is_err() {
            // Should the disk be full, nothing is made ready before there is room again.
            self.last_bytes = 0;
        }
    }

    /// Waits until it is time for another flush, and takes what comes meanwhile.
    #[expect(
        clippy::disallowed_methods,
        reason = "half a millisecond at a time, which the runtime's timer can't tell from two"
    )]
    fn gather(&mut self, group: &mut Vec<Entry>) {
        loop {
            while group.len() < GROUP_EVENTS_MAX
                && let Ok(entry) = self.entries.try_recv()
            {
                group.push(entry);
            }
            let every = if group.len() < GROUP_EVENTS_ENOUGH { FLUSH_EVERY } else { FLUSH_EVERY_MIN };
            let rest = every.saturating_sub(self.flushed.elapsed());
            if rest.is_zero() {
                break;
            }
            std::thread::sleep(rest.min(FLUSH_EVERY_MIN));
        }
        self.flushed = Instant::now();
    }

    fn write_lines(&mut self, lines: &[u8]) -> std::io::Result<()> {
        if self.open.as_ref().is_some_and(|(open, _)| !open.has_room(lines)) {
            self.seal();
        }
        let (open, _) = match &mut self.open {
            Some(open) => open,
            none => {
                let segment = match self.preallocated.take() {
                    Some(spare) => spare,
                    None => self.folder.create(self.rng.uuid_v7(self.clock.now()))?,
                };
                self.preallocated.order(self.last_bytes, self.limits.max_segment_bytes);
                none.insert((segment, Instant::now()))
            }
        };
        open.append(lines)
    }

    /// Ends the open segment, if there is one.
    fn seal(&mut self) {
        let Some((open, _)) = self.open.take() else { return };
        self.last_bytes = open.bytes;
        match self.folder.seal(&open) {
            Ok(segment) => self.sealed.extend(segment),
            // Still there under its open name: the next start seals it.
            Err(error) => {
                tracing::error!(%error, "a segment could not be sealed and stays until the next start");
            }
        }
    }
}
