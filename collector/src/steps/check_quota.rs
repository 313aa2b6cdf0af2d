//! An account's plan allows so many events a calendar month. Counting each in Postgres would be a round trip an
//! event, so collectors lease blocks of the month ahead and count from those in memory.
//!
//! What a lease holds counts as used, so all collectors together never pass the limit. The rest of a block is given
//! back when the account falls silent, at the month's end and at shutdown; **a collector that is killed loses at most
//! one block of each account's month**. While Postgres is away events of known accounts are taken on credit and
//! charged when it is back, even past the limit: nothing a visitor sent is lost because of us.

mod allowance;
mod quota_leases;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use chrono::NaiveDate;
use domain::months::month_of;
use domain::tracking::Dropped;
use service::Clock;
use store::Db;
use store::lookups::LookUps;
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use super::find_site::Site;
use crate::config::Quota;
use crate::pipeline::IncomingEvent;
use allowance::{Allowance, Verdict};
use quota_leases::QuotaLeases;

/// Counts events against their account's month. The [`QuotaLeases`] ends once this is dropped.
pub(crate) struct CheckQuota {
    accounts: Arc<Accounts>,
    asks: mpsc::UnboundedSender<Arc<Account>>,
    lease_timeout: Duration,
}

/// The accounts that send.
struct Accounts {
    known: RwLock<HashMap<Uuid, Arc<Account>>>,
    rules: Quota,
}

/// An event that was counted; unless it is kept, dropping this counts it no more. So an event whose sender hung up
/// before it was safe costs nobody anything.
pub(crate) struct Counted {
    /// None if nobody knows yet whose it is.
    account: Option<Arc<Account>>,
    kept: bool,
}

/// One account's allowance, and who waits for more of it.
struct Account {
    id: Uuid,
    allowance: Mutex<Allowance>,
    answered: Notify,
}

impl CheckQuota {
    /// The step, and the task that leases for it and gives back.
    pub(crate) fn new(db: Db, lookups: LookUps, clock: Clock, rules: Quota) -> (Self, QuotaLeases) {
        let (asks, asked) = mpsc::unbounded_channel();
        let lease_timeout = rules.lease_timeout;
        let accounts = Arc::new(Accounts { known: RwLock::default(), rules });
        let keeper = QuotaLeases::new((db, lookups), clock, Arc::clone(&accounts), asked);
        (Self { accounts, asks, lease_timeout }, keeper)
    }

    /// Events of a site that isn't known yet are counted once it is.
    pub(crate) async fn step(&self, arrival: &IncomingEvent, site: Site) -> Result<Counted, Dropped> {
        let Some(owner) = site.owner() else { return Ok(Counted { account: None, kept: false }) };
        let (month, limit) = (month_of(arrival.taken_at), owner.plan.limits().events_per_month);
        let mut until = None;
        loop {
            let now = Instant::now();
            let account = self.accounts.get(owner.account_id, month, limit, now);
            // Listened to before looking, so that an answer in between is not missed.
            let answered = account.answered.notified();
            let (verdict, ask) = account.allowance().take(month, limit, now);
            if ask {
                // Fails only when the keeper has died, which ends the collector.
                let _ended = self.asks.send(Arc::clone(&account));
            }
            match verdict {
                Verdict::Taken => return Ok(Counted { account: Some(Arc::clone(&account)), kept: false }),
                Verdict::UsedUp => return Err(Dropped::Quota),
                Verdict::Closed => {}
                Verdict::Wait => {
                    let until = *until.get_or_insert(tokio::time::Instant::now() + self.lease_timeout);
                    if tokio::time::timeout_at(until, answered).await.is_err() {
                        account.allowance().take_on_credit();
                        return Ok(Counted { account: Some(Arc::clone(&account)), kept: false });
                    }
                }
            }
        }
    }
}

impl Counted {
    /// The event is on its way to the disk.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// It came to nothing after all.
    pub(crate) fn give_back(&mut self) {
        self.kept = false;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(account) = self.account.take().filter(|_| !self.kept) {
            account.allowance().undo();
        }
    }
}

impl Accounts {
    fn get(&self, id: Uuid, month: NaiveDate, limit: i64, now: Instant) -> Arc<Account> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        known.unwrap_or_else(|| {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            let allowance = Mutex::new(Allowance::new(month, limit, &self.rules, now));
            Arc::clone(
                known
                    .entry(id)
                    .or_insert_with(|| Arc::new(Account { id, allowance, answered: Notify::new() })),
            )
        })
    }
}

impl Account {
    fn allowance(&self) -> MutexGuard<'_, Allowance> {
        self.allowance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
