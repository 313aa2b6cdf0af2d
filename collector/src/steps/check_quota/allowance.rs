//! The number of events an account may still send this month, as far as this collector has leased them. Pure state,
//! without I/O.

use std::time::{Duration, Instant};

use chrono::NaiveDate;

use crate::config::Quota;

/// How soon Postgres is queried again after it was unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The first block of an account is this fraction of a full one, and each further block is twice as large. So little
/// is leased beyond what is used.
const FIRST_BLOCK_DIVISOR: i64 = 10;
/// Blocks of accounts without a limit are this many times larger: there is no limit to overshoot.
const UNLIMITED_BLOCK_FACTOR: i64 = 100;
/// The next block is requested when this fraction of the last is left, so that no event waits for it.
const LOW_DIVISOR: i64 = 4;

/// Whether an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Taken,
    /// The month's events are used up.
    Exhausted,
    /// A lease has been requested; the event must wait for it.
    Pending,
    /// This allowance was closed and has been replaced by another.
    Closed,
}

/// A month, and its events to return (above zero) or to charge (below zero).
pub(super) type Settlement = (NaiveDate, i64);

/// The result of the last lease request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuotaState {
    /// More events can be leased.
    Available,
    /// The month's events are used up. Request again at this time.
    Exhausted(Instant),
    /// Postgres was unavailable. Request again at this time; until then events are taken on credit.
    Unavailable(Instant),
}

/// The state of one account's month.
#[derive(Debug)]
pub(super) struct Allowance {
    month: NaiveDate,
    limit: i64,
    /// Events leased and not used; below zero, events used and not leased.
    left: i64,
    /// Size of the next lease.
    block_size: i64,
    max_block_size: i64,
    /// The next lease is requested once `left` is down to this.
    low: i64,
    retry_interval: Duration,
    state: QuotaState,
    is_requesting: bool,
    used_at: Instant,
    settlements: Vec<Settlement>,
    closed: bool,
}

/// A request for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseRequest {
    pub(super) month: NaiveDate,
    pub(super) count: i64,
    pub(super) limit: i64,
}

impl Allowance {
    pub(super) fn new(month: NaiveDate, limit: i64, config: &Quota, now: Instant) -> Self {
        let max_block_size = config.block_size.max(1);
        Self {
            month,
            limit,
            left: 0,
            block_size: (max_block_size / FIRST_BLOCK_DIVISOR).max(1),
            max_block_size,
            low: 0,
            retry_interval: config.retry_interval,
            state: QuotaState::Available,
            is_requesting: false,
            used_at: now,
            settlements: Vec::new(),
            closed: false,
        }
    }

    /// Counts one event if possible. The second value says whether the caller must request a lease now.
    pub(super) fn take(&mut self, month: NaiveDate, limit: i64, now: Instant) -> (Verdict, bool) {
        if self.closed {
            return (Verdict::Closed, false);
        }
        self.start_month(month);
        if limit != self.limit {
            self.limit = limit;
            self.clear_exhausted();
        }
        self.used_at = now;
        let verdict = match self.state {
            QuotaState::Exhausted(_) if self.left <= 0 => Verdict::Exhausted,
            QuotaState::Available if self.left <= 0 => Verdict::Pending,
            _ => {
                self.left -= 1;
                Verdict::Taken
            }
        };
        let is_due = match self.state {
            QuotaState::Available => self.left <= self.low,
            QuotaState::Exhausted(retry_at) | QuotaState::Unavailable(retry_at) => now >= retry_at,
        };
        let needs_lease = is_due && !self.is_requesting;
        self.is_requesting |= needs_lease;
        (verdict, needs_lease)
    }

    /// Counts one event after its wait for a lease timed out.
    pub(super) fn take_on_credit(&mut self) {
        self.left -= 1;
    }

    /// Undoes the count of one event. A closed allowance was settled with it.
    pub(super) fn undo(&mut self) {
        self.left += i64::from(!self.closed);
    }

    /// Requests as many events as fill up one block, so that never more than one is leased.
    pub(super) fn next_request(&self) -> LeaseRequest {
        LeaseRequest { month: self.month, count: (self.block_size - self.left).max(1), limit: self.limit }
    }

    /// Adds the granted events of a lease.
    pub(super) fn on_granted(&mut self, request: LeaseRequest, granted: i64, now: Instant) {
        self.is_requesting = false;
        if request.month != self.month {
            self.settlements.push((request.month, granted));
            return;
        }
        self.left += granted;
        self.low = granted / LOW_DIVISOR;
        if granted == request.count {
            let factor = if self.limit < 0 { UNLIMITED_BLOCK_FACTOR } else { 1 };
            self.block_size = (self.block_size * 2).min(self.max_block_size * factor);
        }
        self.state = if granted > 0 {
            QuotaState::Available
        } else {
            QuotaState::Exhausted(now + self.retry_interval)
        };
        if granted == 0 && self.left < 0 {
            self.settle();
        }
    }

    /// Notes that Postgres was unavailable. A month known to be exhausted stays so.
    pub(super) fn on_unavailable(&mut self, now: Instant) {
        self.is_requesting = false;
        let retry_at = now + RETRY_AFTER;
        self.state = if matches!(self.state, QuotaState::Exhausted(_)) {
            QuotaState::Exhausted(retry_at)
        } else {
            QuotaState::Unavailable(retry_at)
        };
    }

    /// Closes the allowance if it was unused for `idle_timeout`. One with uncharged events stays open while Postgres is
    /// unavailable.
    pub(super) fn close_if_idle(&mut self, month: NaiveDate, now: Instant, idle_timeout: Duration) -> bool {
        self.start_month(month);
        let is_idle = now.saturating_duration_since(self.used_at) >= idle_timeout;
        if is_idle && !self.is_requesting && !matches!(self.state, QuotaState::Unavailable(_)) {
            self.close();
        }
        self.closed
    }

    pub(super) fn close(&mut self) {
        self.settle();
        self.closed = true;
    }

    /// Returns the events to return or charge so far, and clears them.
    pub(super) fn take_settlements(&mut self) -> Vec<Settlement> {
        std::mem::take(&mut self.settlements)
    }

    /// A later month starts with nothing leased and no known state.
    fn start_month(&mut self, month: NaiveDate) {
        if month > self.month {
            self.settle();
            self.month = month;
            self.clear_exhausted();
        }
    }

    fn clear_exhausted(&mut self) {
        if matches!(self.state, QuotaState::Exhausted(_)) {
            self.state = QuotaState::Available;
        }
    }

    fn settle(&mut self) {
        if self.left != 0 {
            self.settlements.push((self.month, self.left));
            self.left = 0;
        }
    }
}

#[cfg(test)]
mod tests;
