//! What one account may still send this month, as far as this collector has leased it. Decides, and asks nobody.

use std::time::{Duration, Instant};

use chrono::NaiveDate;

use crate::config::Quota;

/// How soon Postgres is asked again after it gave no answer.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// An account's first block is this part of a whole one; each further one is twice as large. So what is leased and
/// not used is little beside what was used.
const FIRST_PART: i64 = 10;
/// Who has no limit gets blocks so many times as large: there is nothing to be near to.
const UNLIMITED_TIMES: i64 = 100;
/// The next block is asked for when one in so many of the last is left, so that no event waits for it.
const LOW_PART: i64 = 4;

/// Whether an event may be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is counted.
    Taken,
    /// The month is used up.
    UsedUp,
    /// Nobody knows yet: Postgres is being asked.
    Wait,
    /// This allowance was given up; there is another now.
    Closed,
}

/// Events of a month to be given back, or below zero to be charged.
pub(super) type Rest = (NaiveDate, i64);

/// How Postgres answered last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuotaState {
    /// There is more.
    More,
    /// There is no more; worth asking again then.
    NoMore(Instant),
    /// It didn't answer; to be asked again then. Until it does events are taken on credit.
    Away(Instant),
}

#[derive(Debug)]
pub(super) struct Allowance {
    month: NaiveDate,
    limit: i64,
    /// Leased and not used; below zero, used and not leased.
    left: i64,
    /// The next lease's size, and the most it may become.
    block: i64,
    block_max: i64,
    /// With so many left the next is asked for.
    low: i64,
    retry_interval: Duration,
    state: QuotaState,
    asking: bool,
    used_at: Instant,
    rests: Vec<Rest>,
    closed: bool,
}

/// What is to be asked of Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseRequest {
    pub(super) month: NaiveDate,
    pub(super) want: i64,
    pub(super) limit: i64,
}

impl Allowance {
    pub(super) fn new(month: NaiveDate, limit: i64, rules: &Quota, now: Instant) -> Self {
        let block_max = rules.block_size.max(1);
        Self {
            month,
            limit,
            left: 0,
            block: (block_max / FIRST_PART).max(1),
            block_max,
            low: 0,
            retry_interval: rules.retry_interval,
            state: QuotaState::More,
            asking: false,
            used_at: now,
            rests: Vec::new(),
            closed: false,
        }
    }

    /// Counts one event if it may be. The second part says whether Postgres must be asked now.
    pub(super) fn take(&mut self, month: NaiveDate, limit: i64, now: Instant) -> (Verdict, bool) {
        if self.closed {
            return (Verdict::Closed, false);
        }
        self.begin(month);
        if limit != self.limit {
            self.limit = limit;
            self.hope();
        }
        self.used_at = now;
        let verdict = match self.state {
            QuotaState::NoMore(_) if self.left <= 0 => Verdict::UsedUp,
            QuotaState::More if self.left <= 0 => Verdict::Wait,
            _ => {
                self.left -= 1;
                Verdict::Taken
            }
        };
        let due = match self.state {
            QuotaState::More => self.left <= self.low,
            QuotaState::NoMore(then) | QuotaState::Away(then) => now >= then,
        };
        let ask = due && !self.asking;
        self.asking |= ask;
        (verdict, ask)
    }

    /// Counts one event that has waited long enough.
    pub(super) fn take_on_credit(&mut self) {
        self.left -= 1;
    }

    /// One that was counted didn't come to anything. What is given up already was settled with it.
    pub(super) fn undo(&mut self) {
        self.left += i64::from(!self.closed);
    }

    /// As many as make a whole block of what is left, so that never more than one is leased.
    pub(super) fn next_request(&self) -> LeaseRequest {
        LeaseRequest { month: self.month, want: (self.block - self.left).max(1), limit: self.limit }
    }

    /// Postgres granted that many.
    pub(super) fn granted(&mut self, request: LeaseRequest, granted: i64, now: Instant) {
        self.asking = false;
        if request.month != self.month {
            self.rests.push((request.month, granted));
            return;
        }
        self.left += granted;
        self.low = granted / LOW_PART;
        if granted == request.want {
            let times = if self.limit < 0 { UNLIMITED_TIMES } else { 1 };
            self.block = (self.block * 2).min(self.block_max * times);
        }
        self.state =
            if granted > 0 { QuotaState::More } else { QuotaState::NoMore(now + self.retry_interval) };
        if granted == 0 && self.left < 0 {
            self.put_aside();
        }
    }

    /// Postgres gave no answer. What is known to be used up stays so.
    pub(super) fn unanswered(&mut self, now: Instant) {
        self.asking = false;
        let then = now + TRY_AGAIN_AFTER;
        self.state = if matches!(self.state, QuotaState::NoMore(_)) {
            QuotaState::NoMore(then)
        } else {
            QuotaState::Away(then)
        };
    }

    /// Gives the allowance up if nothing was sent for `idle`. One that owes something stays until it can be paid.
    pub(super) fn close_if_idle(&mut self, month: NaiveDate, now: Instant, idle: Duration) -> bool {
        self.begin(month);
        let idles = now.saturating_duration_since(self.used_at) >= idle;
        if idles && !self.asking && !matches!(self.state, QuotaState::Away(_)) {
            self.close();
        }
        self.closed
    }

    /// Gives the allowance up.
    pub(super) fn close(&mut self) {
        self.put_aside();
        self.closed = true;
    }

    /// What is to be given back or charged by now.
    pub(super) fn take_rests(&mut self) -> Vec<Rest> {
        std::mem::take(&mut self.rests)
    }

    /// A later month begins with nothing leased and nothing known.
    fn begin(&mut self, month: NaiveDate) {
        if month > self.month {
            self.put_aside();
            self.month = month;
            self.hope();
        }
    }

    /// That there was no more need not be so any longer.
    fn hope(&mut self) {
        if matches!(self.state, QuotaState::NoMore(_)) {
            self.state = QuotaState::More;
        }
    }

    fn put_aside(&mut self) {
        if self.left != 0 {
            self.rests.push((self.month, self.left));
            self.left = 0;
        }
    }
}

#[cfg(test)]
mod tests;
