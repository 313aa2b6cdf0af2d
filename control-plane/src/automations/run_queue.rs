//! The queue of runs that wait for their insertion.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};

use tokio::time::Instant;
use uuid::Uuid;
use web::{Code, Problem};

use super::pending_run::PendingRun;

/// Concurrent transactions. While one waits for the disk, the other runs.
const WRITERS: usize = 2;
/// Most runs of a batch.
const MAX_BATCH_RUNS: usize = 512;
/// Most bytes of a batch, unless it is a single run.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// Upper bounds of the queue. Beyond them Postgres is slower than the incoming load, and new requests get 503.
const MAX_QUEUED_RUNS: usize = 10_000;
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// The same for one account, so that a flood of requests to one gives only this one 503.
const MAX_ACCOUNT_RUNS: usize = 1_000;
const MAX_ACCOUNT_BYTES: usize = 8 << 20;

/// Number and size of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Queued {
    runs: usize,
    bytes: usize,
}

/// The waiting runs and the number of writers.
#[derive(Default)]
pub(super) struct RunQueue {
    runs: VecDeque<PendingRun>,
    queued: Queued,
    by_account: HashMap<Uuid, Queued>,
    writers: usize,
    /// Accounts of the batches that are being written. All runs of an account change its counter of the month, so a
    /// second writer would only wait for the first one's commit: what arrives meanwhile is left for the next batch.
    writing: HashSet<Uuid>,
}

/// The runs of one transaction, their accounts in order.
pub(super) struct Batch {
    pub(super) runs: Vec<PendingRun>,
    /// To be passed to [`RunQueue::finish`].
    pub(super) account_ids: Vec<Uuid>,
}

impl RunQueue {
    /// Queues a run. Returns whether the caller must start a writer, which is counted already.
    ///
    /// # Errors
    /// 503 if the queue is full, or holds too many runs of the account.
    pub(super) fn push(&mut self, pending: PendingRun) -> Result<bool, Problem> {
        let of_account = self.by_account.get(&pending.requested.account_id).copied().unwrap_or_default();
        let is_full = |queued: Queued, max_runs: usize, max_bytes: usize| {
            queued.runs >= max_runs || queued.bytes + pending.bytes() > max_bytes
        };
        if is_full(self.queued, MAX_QUEUED_RUNS, MAX_QUEUED_BYTES)
            || is_full(of_account, MAX_ACCOUNT_RUNS, MAX_ACCOUNT_BYTES)
        {
            let detail = "too many runs wait to be stored; nothing was changed";
            return Err(Problem::new(Code::Unavailable, detail).retry_after(1));
        }
        // The writer of a batch with its account takes it next.
        let needs_writer = self.writers < WRITERS && !self.writing.contains(&pending.requested.account_id);
        self.writers += usize::from(needs_writer);
        self.count(&pending);
        self.runs.push_back(pending);
        Ok(needs_writer)
    }

    /// Queues the runs of a refused batch again, each to be inserted alone, before all others.
    pub(super) fn push_back_alone(&mut self, batch: Vec<PendingRun>) {
        for mut pending in batch.into_iter().rev() {
            pending.is_alone = true;
            self.count(&pending);
            self.runs.push_front(pending);
        }
    }

    /// Removes the next batch, without runs of requests that have ended and of accounts that another writer is writing.
    /// `None` if there is nothing else: the writer has to end.
    pub(super) fn next_batch(&mut self) -> Option<Batch> {
        let (mut runs, mut bytes, mut skipped) = (Vec::new(), 0, Vec::new());
        while let Some(next) = self.runs.pop_front() {
            if self.writing.contains(&next.requested.account_id) {
                skipped.push(next);
                continue;
            }
            let size = next.bytes();
            let is_full = runs.len() == MAX_BATCH_RUNS || bytes + size > MAX_BATCH_BYTES || next.is_alone;
            if is_full && !runs.is_empty() {
                self.runs.push_front(next);
                break;
            }
            self.uncount(&next);
            if next.request.is_closed() {
                continue;
            }
            bytes += size;
            let is_alone = next.is_alone;
            runs.push(next);
            if is_alone {
                break;
            }
        }
        skipped.into_iter().rev().for_each(|pending| self.runs.push_front(pending));
        if runs.is_empty() {
            self.writers -= 1;
            return None;
        }
        // The runs of an account follow each other, to be inserted by one statement.
        runs.sort_by_key(|pending| pending.requested.account_id);
        let mut account_ids: Vec<Uuid> = runs.iter().map(|pending| pending.requested.account_id).collect();
        account_ids.dedup();
        self.writing.extend(&account_ids);
        Some(Batch { runs, account_ids })
    }

    /// Ends the writing of a batch, whatever its outcome.
    pub(super) fn finish(&mut self, account_ids: &[Uuid]) {
        account_ids.iter().for_each(|account_id| {
            self.writing.remove(account_id);
        });
    }

    /// Fails the runs that were queued before a writer began to wait for a connection, which it did not get. Returns
    /// whether later ones are left for it; otherwise it has to end.
    pub(super) fn fail_older(&mut self, began_to_wait: Instant) -> bool {
        while let Some(pending) = self.runs.pop_front_if(|pending| pending.queued_at <= began_to_wait) {
            self.uncount(&pending);
            pending.answer(Err(Problem::nothing_changed()));
        }
        let has_more = !self.runs.is_empty();
        self.writers -= usize::from(!has_more);
        has_more
    }

    fn count(&mut self, pending: &PendingRun) {
        let of_account = self.by_account.entry(pending.requested.account_id).or_default();
        for queued in [&mut self.queued, of_account] {
            queued.runs += 1;
            queued.bytes += pending.bytes();
        }
    }

    fn uncount(&mut self, pending: &PendingRun) {
        self.queued.runs -= 1;
        self.queued.bytes -= pending.bytes();
        if let Entry::Occupied(mut of_account) = self.by_account.entry(pending.requested.account_id) {
            of_account.get_mut().runs -= 1;
            of_account.get_mut().bytes -= pending.bytes();
            if of_account.get().runs == 0 {
                of_account.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use store::automations::NewRun;
    use tokio::sync::oneshot;
    use uuid::Uuid;

    use super::super::pending_run::{InsertResult, RequestedRun};
    use super::*;

    fn pending(account: u128, bytes: usize) -> (PendingRun, oneshot::Receiver<InsertResult>) {
        let run = NewRun {
            id: Uuid::from_u128(account),
            automation_id: Uuid::nil(),
            definition_hash: Vec::new(),
            trigger_type: "http",
            trigger: Value::Null,
            is_test: false,
            depth: 0,
            concurrency: None,
            submission_id: None,
            source_submission_id: None,
            fire_at: None,
            traceparent: None,
        };
        PendingRun::new(RequestedRun { account_id: Uuid::from_u128(account), runs_limit: -1, run, bytes })
    }

    /// Takes the next batch as if it was written at once.
    fn written(queue: &mut RunQueue) -> Option<Vec<PendingRun>> {
        let batch = queue.next_batch()?;
        queue.finish(&batch.account_ids);
        Some(batch.runs)
    }

    fn accounts(runs: &[PendingRun]) -> Vec<u128> {
        runs.iter().map(|pending| pending.requested.account_id.as_u128()).collect()
    }

    #[test]
    fn a_batch_has_its_accounts_in_order_and_no_ended_requests() {
        let mut queue = RunQueue::default();
        let (runs, mut results): (Vec<_>, Vec<_>) =
            [3, 1, 2, 1].map(|account| pending(account, 1)).into_iter().unzip();
        let starts: Vec<bool> = runs.into_iter().map(|run| queue.push(run).unwrap()).collect();
        assert_eq!(starts, [true, true, false, false], "two writers");
        drop(results.remove(2));
        let batch = written(&mut queue).unwrap();
        assert_eq!(accounts(&batch), [1, 1, 3]);
        assert!(queue.next_batch().is_none());
        queue.push_back_alone(batch);
        let alone: Vec<Vec<u128>> =
            std::iter::from_fn(|| written(&mut queue).map(|runs| accounts(&runs))).take(3).collect();
        assert_eq!(alone, [[1], [1], [3]]);
        assert_eq!((queue.queued, queue.runs.len(), queue.by_account.len()), (Queued::default(), 0, 0));
    }

    #[test]
    fn the_runs_of_an_account_are_written_by_one_writer_at_a_time() {
        let mut queue = RunQueue::default();
        let mut results = Vec::new();
        let mut push = |queue: &mut RunQueue, account| {
            let (run, result) = pending(account, 1);
            results.push(result);
            queue.push(run).unwrap()
        };
        assert!(push(&mut queue, 1));
        let first = queue.next_batch().unwrap();
        assert!(!push(&mut queue, 1), "the first writer takes it next");
        assert!(push(&mut queue, 2));
        assert!(!push(&mut queue, 1));
        let second = queue.next_batch().unwrap();
        assert_eq!((accounts(&first.runs), accounts(&second.runs)), (vec![1], vec![2]));
        queue.finish(&second.account_ids);
        assert!(queue.next_batch().is_none(), "the second writer has nothing to do");
        queue.finish(&first.account_ids);
        assert_eq!(accounts(&queue.next_batch().unwrap().runs), [1, 1]);
        assert_eq!((queue.queued, queue.runs.len()), (Queued::default(), 0));
    }

    #[test]
    fn the_queue_is_bounded_in_runs_and_in_bytes() {
        let mut queue = RunQueue::default();
        let mut results = Vec::new();
        for account in 0..300 {
            let (run, result) = pending(account, 256 << 10);
            if let Err(problem) = queue.push(run) {
                assert_eq!(problem.code(), Code::Unavailable);
                break;
            }
            results.push(result);
        }
        assert!((200..256).contains(&results.len()), "{}", results.len());
        let mut queue = RunQueue::default();
        let mut results = Vec::new();
        for at in 0..MAX_QUEUED_RUNS {
            let (run, result) = pending(at as u128, 10);
            queue.push(run).unwrap();
            results.push(result);
        }
        assert!(queue.push(pending(1, 10).0).is_err());
        assert_eq!(queue.next_batch().unwrap().runs.len(), MAX_BATCH_RUNS);
    }

    #[test]
    fn a_flood_to_one_account_leaves_room_for_the_others() {
        for (bytes, expected) in [(10, 1_000..1_001), (256 << 10, 25..33)] {
            let mut queue = RunQueue::default();
            let mut results = Vec::new();
            for _ in 0..2_000 {
                let (run, result) = pending(1, bytes);
                results.extend(queue.push(run).is_ok().then_some(result));
            }
            assert!(expected.contains(&results.len()), "{}", results.len());
            let (other, _result) = pending(2, bytes);
            assert!(queue.push(other).is_ok());
            while written(&mut queue).is_some() && !queue.runs.is_empty() {}
            assert_eq!((queue.queued, queue.by_account.len()), (Queued::default(), 0));
            assert!(queue.push(pending(1, bytes).0).is_ok());
        }
    }
}
