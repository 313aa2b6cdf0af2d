//! Enforces the number of events that an account's plan allows in a calendar month. Counting each event in Postgres
//! would cost a round trip, so collectors lease blocks of the month ahead and count down in memory.
//!
//! A leased block counts as used, so all collectors together never exceed the limit. The unused rest of a block is
//! returned when the account is idle, at the end of the month and at shutdown; **a killed collector loses at most one
//! block of each account's month**. While Postgres is unavailable, events of known accounts are accepted on credit and
//! charged afterwards, even beyond the limit: no visitor's event is lost because of an outage.

mod accounts;
mod allowance;
mod quota_leases;

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::months::month_of;
use domain::tracking::Dropped;
use service::Clock;
use store::Db;
use store::read_pool::ReadPool;
use tokio::sync::mpsc;

use super::find_site::Site;
use crate::config::Quota;
use crate::incoming_event::IncomingEvent;
use accounts::{Account, Accounts};
use allowance::Verdict;
use quota_leases::QuotaLeases;

/// Counts events against their account's month. [`QuotaLeases`] ends once this is dropped.
pub(crate) struct CheckQuota {
    accounts: Arc<Accounts>,
    lease_requests: mpsc::UnboundedSender<Arc<Account>>,
    lease_timeout: Duration,
}

/// A counted event. Dropping it uncommitted undoes the count, so an event that is never stored,
/// because its client disconnects, costs nothing.
pub(crate) struct QuotaReservation {
    /// `None` if the site is unresolved.
    account: Option<Arc<Account>>,
    committed: bool,
}

impl CheckQuota {
    /// Returns the step and the task that leases and returns blocks for it.
    pub(crate) fn new(db: Db, lookups: ReadPool, clock: Clock, config: Quota) -> (Self, QuotaLeases) {
        let (lease_requests, received_requests) = mpsc::unbounded_channel();
        let lease_timeout = config.lease_timeout;
        let accounts = Arc::new(Accounts::new(config));
        let leases = QuotaLeases::new((db, lookups), clock, Arc::clone(&accounts), received_requests);
        (Self { accounts, lease_requests, lease_timeout }, leases)
    }

    /// Events of an unresolved site are charged once it is resolved.
    pub(crate) async fn step(&self, event: &IncomingEvent, site: Site) -> Result<QuotaReservation, Dropped> {
        let Some(owner) = site.owner() else { return Ok(QuotaReservation::new(None)) };
        let (month, limit) = (month_of(event.arrived_at), owner.plan.limits().events_per_month);
        let mut deadline = None;
        loop {
            let now = Instant::now();
            let account = self.accounts.get(owner.account_id, month, limit, now);
            // Registered before the allowance is read, so that no lease in between is missed.
            let leased = account.leased.notified();
            let (verdict, needs_lease) = account.allowance().take(month, limit, now);
            if needs_lease {
                // Fails only after the lease task has died, which ends the collector.
                let _ended = self.lease_requests.send(Arc::clone(&account));
            }
            match verdict {
                Verdict::Taken => return Ok(QuotaReservation::new(Some(Arc::clone(&account)))),
                Verdict::Exhausted => return Err(Dropped::Quota),
                Verdict::Closed => {}
                Verdict::Pending => {
                    let deadline = *deadline.get_or_insert(tokio::time::Instant::now() + self.lease_timeout);
                    if tokio::time::timeout_at(deadline, leased).await.is_err() {
                        account.allowance().take_on_credit();
                        return Ok(QuotaReservation::new(Some(Arc::clone(&account))));
                    }
                }
            }
        }
    }
}

impl QuotaReservation {
    fn new(account: Option<Arc<Account>>) -> Self {
        Self { account, committed: false }
    }

    /// Keeps the count when this is dropped.
    pub(crate) fn commit(&mut self) {
        self.committed = true;
    }

    /// Undoes the count when this is dropped.
    pub(crate) fn cancel(&mut self) {
        self.committed = false;
    }
}

impl Drop for QuotaReservation {
    fn drop(&mut self) {
        if let Some(account) = self.account.take().filter(|_| !self.committed) {
            account.allowance().undo();
        }
    }
}

#[cfg(test)]
mod tests;
