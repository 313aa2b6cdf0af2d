//! Leases blocks of events from Postgres, gives back what is left of them, and charges what was taken without.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::months::month_of;
use service::{Clock, metrics};
use store::Db;
use store::lookups::LookUps;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use super::allowance::Rest;
use super::{Account, Accounts};

/// Silent accounts are looked for so often while they are silent, …
const LOOKS: u32 = 4;
/// … and never less often than this.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(10);

/// Does for [`super::CheckQuota`] what takes a database.
pub(crate) struct QuotaLeases {
    books: Arc<Books>,
    asked: mpsc::UnboundedReceiver<Arc<Account>>,
}

struct Books {
    db: Db,
    lookups: LookUps,
    clock: Clock,
    accounts: Arc<Accounts>,
    /// What waits to be given back or charged.
    rests: Mutex<Vec<(Uuid, Rest)>>,
}

impl QuotaLeases {
    pub(super) fn new(
        (db, lookups): (Db, LookUps),
        clock: Clock,
        accounts: Arc<Accounts>,
        asked: mpsc::UnboundedReceiver<Arc<Account>>,
    ) -> Self {
        Self { books: Arc::new(Books { db, lookups, clock, accounts, rests: Mutex::default() }), asked }
    }

    /// Works until nobody can ask any more, then gives everything back.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let look_every = (self.books.accounts.rules.idle_timeout / LOOKS).min(LOOK_EVERY_MAX);
        let mut looks = tokio::time::interval(look_every.max(Duration::from_millis(1)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut at_work = JoinSet::new();
        loop {
            let books = Arc::clone(&self.books);
            tokio::select! {
                asked = self.asked.recv() => match asked {
                    Some(account) => {
                        at_work.spawn(async move { books.lease(&account).await });
                    }
                    None => break,
                },
                _ = looks.tick() => {
                    at_work.spawn(async move {
                        books.close_idle();
                        books.settle().await;
                    });
                }
                Some(_done) = at_work.join_next() => {}
            }
        }
        while at_work.join_next().await.is_some() {}
        self.books.close_all();
        self.books.settle().await;
        Ok(())
    }
}

impl Books {
    async fn lease(&self, account: &Account) {
        let request = account.allowance().next_request();
        let lease = async |conn: &mut store::Conn| {
            store::months::lease_events(conn, account.id, request.month, request.want, request.limit).await
        };
        let result = match self.lookups.ask(lease).await {
            Ok(granted) => {
                account.allowance().granted(request, granted, Instant::now());
                if granted > 0 { "granted" } else { "used_up" }
            }
            Err(error) => {
                tracing::warn!(%error, "events can't be leased: they are taken and counted later");
                account.allowance().unanswered(Instant::now());
                "unanswered"
            }
        };
        metrics::counter("collector_quota_blocks_leased_total").add(1, &[("result", result)]);
        account.answered.notify_waiters();
    }

    /// Gives up the allowances of silent accounts, and notes what is left of them and of past months.
    fn close_idle(&self) {
        let (month, now) = (month_of(self.clock.now()), Instant::now());
        let idle = self.accounts.rules.idle_timeout;
        self.accounts.known.write().unwrap_or_else(PoisonError::into_inner).retain(|_, account| {
            let closed = account.allowance().close_if_idle(month, now, idle);
            self.note(account);
            !closed
        });
    }

    fn close_all(&self) {
        for (_, account) in self.accounts.known.write().unwrap_or_else(PoisonError::into_inner).drain() {
            account.allowance().close();
            self.note(&account);
        }
    }

    fn note(&self, account: &Account) {
        let rests = account.allowance().take_rests().into_iter().map(|rest| (account.id, rest));
        self.rests.lock().unwrap_or_else(PoisonError::into_inner).extend(rests);
    }

    /// Writes down what was noted, once: of a statement that fails it isn't known whether it was carried out, and
    /// nobody is to be charged twice.
    async fn settle(&self) {
        if self.rests.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        let mut conn = match store::acquire(&self.db).await {
            Ok(conn) => conn,
            Err(error) => return tracing::warn!(%error, "leased events can't be given back yet"),
        };
        let rests = std::mem::take(&mut *self.rests.lock().unwrap_or_else(PoisonError::into_inner));
        for (account_id, (month, count)) in rests {
            let settled = if count > 0 {
                store::months::give_back_events(&mut conn, account_id, month, count).await
            } else {
                metrics::counter("collector_events_charged_total").add(count.unsigned_abs(), &[]);
                store::months::charge_events(&mut conn, account_id, month, -count).await
            };
            if let Err(error) = settled {
                tracing::warn!(%error, count, "leased events were not given back, or taken ones not charged");
            }
        }
    }
}
