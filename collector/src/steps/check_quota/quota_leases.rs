//! Leases blocks of events from Postgres, returns their unused rest, and charges events taken on credit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::months::month_of;
use service::Clock;
use store::Db;
use store::read_pool::ReadPool;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::accounts::{Account, Accounts};
use super::allowance::Settlement;
use crate::metrics;

/// Accounts are checked this often within `idle_timeout`, …
const CHECKS_PER_IDLE_TIMEOUT: u32 = 4;
/// … and at least this often.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The background task of [`super::CheckQuota`], which does its I/O.
pub(crate) struct QuotaLeases {
    ledger: Arc<Ledger>,
    requests: mpsc::UnboundedReceiver<Arc<Account>>,
}

struct Ledger {
    db: Db,
    lookups: ReadPool,
    clock: Clock,
    accounts: Arc<Accounts>,
    /// Events to return or charge, by account.
    settlements: Mutex<Vec<(Uuid, Settlement)>>,
}

impl QuotaLeases {
    pub(super) fn new(
        (db, lookups): (Db, ReadPool),
        clock: Clock,
        accounts: Arc<Accounts>,
        requests: mpsc::UnboundedReceiver<Arc<Account>>,
    ) -> Self {
        let ledger = Ledger { db, lookups, clock, accounts, settlements: Mutex::default() };
        Self { ledger: Arc::new(ledger), requests }
    }

    /// Serves lease requests until the step is dropped, then returns everything unused.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let idle_timeout = self.ledger.accounts.config.idle_timeout;
        let interval = (idle_timeout / CHECKS_PER_IDLE_TIMEOUT).min(MAX_CHECK_INTERVAL);
        let mut ticks = service::ticks(interval.max(Duration::from_millis(1)));
        let mut tasks = JoinSet::new();
        loop {
            let ledger = Arc::clone(&self.ledger);
            tokio::select! {
                request = self.requests.recv() => match request {
                    Some(account) => {
                        tasks.spawn(async move { ledger.lease(&account).await });
                    }
                    None => break,
                },
                _ = ticks.tick() => {
                    tasks.spawn(async move {
                        ledger.close_idle();
                        ledger.settle().await;
                    });
                }
                Some(_done) = tasks.join_next() => {}
            }
        }
        while tasks.join_next().await.is_some() {}
        self.ledger.close_all();
        self.ledger.settle().await;
        Ok(())
    }
}

impl Ledger {
    async fn lease(&self, account: &Account) {
        let request = account.allowance().next_request();
        let lease = async |conn: &mut store::Conn| {
            store::monthly_usage::lease_events(conn, account.id, request.month, request.count, request.limit)
                .await
        };
        let result = match self.lookups.query(lease).await {
            Ok(granted) => {
                account.allowance().on_granted(request, granted, Instant::now());
                if granted > 0 { "granted" } else { "used_up" }
            }
            Err(error) => {
                tracing::warn!(%error, "leasing events failed: events are accepted and charged later");
                account.allowance().on_unavailable(Instant::now());
                "unanswered"
            }
        };
        metrics::QUOTA_BLOCKS_LEASED.add(1, &[("result", result)]);
        account.leased.notify_waiters();
    }

    /// Closes the allowances of idle accounts, and collects their settlements and those of past months.
    fn close_idle(&self) {
        let (month, now) = (month_of(self.clock.now()), Instant::now());
        let idle_timeout = self.accounts.config.idle_timeout;
        self.accounts.retain(|account| {
            let closed = account.allowance().close_if_idle(month, now, idle_timeout);
            self.collect_settlements(account);
            !closed
        });
    }

    fn close_all(&self) {
        self.accounts.retain(|account| {
            account.allowance().close();
            self.collect_settlements(account);
            false
        });
    }

    fn collect_settlements(&self, account: &Account) {
        let settlements = account.allowance().take_settlements().into_iter().map(|one| (account.id, one));
        self.settlements.lock().unwrap_or_else(PoisonError::into_inner).extend(settlements);
    }

    /// Executes each settlement at most once: a failed statement may have been executed, and no account may be charged
    /// twice.
    async fn settle(&self) {
        if self.settlements.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        let mut conn = match store::acquire(&self.db).await {
            Ok(conn) => conn,
            Err(error) => return tracing::warn!(%error, "returning leased events failed: retrying"),
        };
        let settlements =
            std::mem::take(&mut *self.settlements.lock().unwrap_or_else(PoisonError::into_inner));
        for (account_id, (month, count)) in settlements {
            let settled = if count > 0 {
                store::monthly_usage::return_unused_events(&mut conn, account_id, month, count).await
            } else {
                metrics::EVENTS_CHARGED.add(count.unsigned_abs(), &[]);
                store::monthly_usage::charge_events(&mut conn, account_id, month, -count).await
            };
            if let Err(error) = settled {
                tracing::warn!(%error, count, "leased events were not returned, or events on credit not charged");
            }
        }
    }
}
