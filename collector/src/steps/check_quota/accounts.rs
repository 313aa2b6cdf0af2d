//! The accounts that currently send events, each with its allowance.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use chrono::NaiveDate;
use tokio::sync::Notify;
use uuid::Uuid;

use super::allowance::Allowance;
use crate::config::Quota;

/// The active accounts by id.
pub(super) struct Accounts {
    active: RwLock<HashMap<Uuid, Arc<Account>>>,
    pub(super) config: Quota,
}

/// The allowance of one account.
pub(super) struct Account {
    pub(super) id: Uuid,
    allowance: Mutex<Allowance>,
    /// Notifies the events that wait for a lease.
    pub(super) leased: Notify,
}

impl Accounts {
    pub(super) fn new(config: Quota) -> Self {
        Self { active: RwLock::default(), config }
    }

    pub(super) fn get(&self, id: Uuid, month: NaiveDate, limit: i64, now: Instant) -> Arc<Account> {
        let account = self.active.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        account.unwrap_or_else(|| {
            let mut active = self.active.write().unwrap_or_else(PoisonError::into_inner);
            let allowance = Mutex::new(Allowance::new(month, limit, &self.config, now));
            let new = || Arc::new(Account { id, allowance, leased: Notify::new() });
            Arc::clone(active.entry(id).or_insert_with(new))
        })
    }

    /// Removes the accounts for which `keep` returns `false`.
    pub(super) fn retain(&self, keep: impl Fn(&Account) -> bool) {
        let mut active = self.active.write().unwrap_or_else(PoisonError::into_inner);
        active.retain(|_, account| keep(account));
    }
}

impl Account {
    pub(super) fn allowance(&self) -> MutexGuard<'_, Allowance> {
        self.allowance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
