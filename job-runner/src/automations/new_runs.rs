//! Inserts runs of many accounts in one transaction.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use contract::Signal;
use domain::plans::Plan;
use store::Conn;
use store::automations::{InsertedRun, NewRun, OverLimit, insert_runs};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::metrics;

/// A run to insert, with its account.
pub(super) struct AccountRun {
    pub(super) account_id: Uuid,
    pub(super) plan: Plan,
    pub(super) run: NewRun,
}

/// Inserts runs within the months' limits; those beyond leave a row with the status `skipped`. Returns the accounts with
/// due runs. Accounts are locked in order, so that two inserting processes never wait for each other.
pub(super) async fn insert(
    conn: &mut Conn,
    now: DateTime<Utc>,
    runs: Vec<AccountRun>,
) -> Result<Vec<Uuid>, store::Error> {
    let mut accounts: BTreeMap<Uuid, (Plan, Vec<NewRun>)> = BTreeMap::new();
    for AccountRun { account_id, plan, run } in runs {
        accounts.entry(account_id).or_insert_with(|| (plan, Vec::new())).1.push(run);
    }
    let mut due = Vec::new();
    for (account_id, (plan, runs)) in accounts {
        let limit = plan.limits().automation_runs_per_month;
        let inserted = insert_runs(conn, account_id, now, limit, OverLimit::Skip, &runs).await?;
        let count = |result| inserted.iter().filter(|one| **one == result).count();
        if count(InsertedRun::Queued) > 0 {
            due.push(account_id);
        }
        let skipped = count(InsertedRun::OverLimit);
        if skipped > 0 {
            let labels = [("status", "skipped")];
            metrics::AUTOMATION_RUNS_COMPLETED.add(skipped as u64, &labels);
        }
    }
    Ok(due)
}

/// Announces due runs: to this process at once, and to others over the bus.
#[derive(Clone)]
pub(super) struct Announcer {
    pub(super) due_accounts: mpsc::UnboundedSender<Uuid>,
    pub(super) signals: mpsc::UnboundedSender<Signal>,
}

impl Announcer {
    pub(super) fn announce(&self, account_ids: Vec<Uuid>) {
        if account_ids.is_empty() {
            return;
        }
        for account_id in &account_ids {
            let _claiming_has_ended = self.due_accounts.send(*account_id);
        }
        let _publishing_has_ended = self.signals.send(Signal::RunsDue { account_ids });
    }
}
