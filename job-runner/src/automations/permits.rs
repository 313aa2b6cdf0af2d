//! Limits the runs in progress, in total and for each account. The state belongs to this process and lives in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::automations::RunLimit;
use tokio::sync::Notify;
use uuid::Uuid;

/// Runs claimed by one statement.
const CLAIMS_MAX: u32 = 256;

/// The limiter. Clones share its state.
#[derive(Clone)]
pub(super) struct RunPermits(Arc<Shared>);

struct Shared {
    max_total: u32,
    max_per_account: u32,
    used: Mutex<Used>,
    available: Notify,
}

#[derive(Default)]
struct Used {
    total: u32,
    accounts: HashMap<Uuid, u32>,
}

/// The permit of one run: counts for its account until its walk has ended, and in total until it is dropped.
pub(super) struct RunPermit {
    permits: RunPermits,
    account_id: Uuid,
    has_walked: bool,
}

impl RunPermits {
    pub(super) fn new(max_total: u32, max_per_account: u32) -> Self {
        Self(Arc::new(Shared {
            max_total,
            max_per_account,
            used: Mutex::default(),
            available: Notify::new(),
        }))
    }

    /// Returns how many runs to claim for each of these accounts, at most 256 in total. The free permits are divided
    /// evenly, in order, and none gets more than half of them: when a few accounts have runs that take long, some are
    /// left for the others.
    pub(super) fn claim_limits(&self, accounts: impl Iterator<Item = Uuid>) -> Vec<RunLimit> {
        let used = self.used();
        let free = self.0.max_total.saturating_sub(used.total).min(CLAIMS_MAX);
        let candidates: Vec<_> = accounts
            .filter_map(|id| {
                let own = used.accounts.get(&id).copied().unwrap_or_default();
                let available = self.0.max_per_account.saturating_sub(own).min(free.div_ceil(2));
                (available > 0).then_some((id, available))
            })
            .collect();
        let (mut left, mut others) = (free, u32::try_from(candidates.len()).unwrap_or(u32::MAX));
        let shares = candidates.into_iter().map(|(account_id, available)| {
            let share = available.min(left.div_ceil(others));
            (left, others) = (left - share, others - 1);
            RunLimit { account_id, limit: i32::try_from(share).unwrap_or(i32::MAX) }
        });
        shares.filter(|limit| limit.limit > 0).collect()
    }

    /// Acquires a permit unconditionally: the caller has claimed no more than [`Self::claim_limits`] allowed.
    pub(super) fn acquire(&self, account_id: Uuid) -> RunPermit {
        let mut used = self.used();
        used.total += 1;
        *used.accounts.entry(account_id).or_default() += 1;
        RunPermit { permits: self.clone(), account_id, has_walked: false }
    }

    /// Waits until half of an account's permits, or a quarter of the total, have become available since the last wait.
    pub(super) async fn wait_available(&self) {
        self.0.available.notified().await;
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunPermit {
    /// Releases the account's share: the walk has ended, only its result is to be stored.
    pub(super) fn release_account(&mut self) {
        if std::mem::replace(&mut self.has_walked, true) {
            return;
        }
        let mut used = self.permits.used();
        let Some(own) = used.accounts.get_mut(&self.account_id) else { return };
        *own -= 1;
        let own = *own;
        if own == 0 {
            used.accounts.remove(&self.account_id);
        }
        drop(used);
        // Not for each single permit, because runs are claimed in batches.
        if own * 2 <= self.permits.0.max_per_account {
            self.permits.0.available.notify_one();
        }
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        self.release_account();
        let mut used = self.permits.used();
        used.total -= 1;
        let is_quarter_available = used.total <= self.permits.0.max_total / 4 * 3;
        drop(used);
        if is_quarter_available {
            self.permits.0.available.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);

    fn limits(permits: &RunPermits, accounts: &[Uuid]) -> Vec<i32> {
        permits.claim_limits(accounts.iter().copied()).iter().map(|limit| limit.limit).collect()
    }

    #[test]
    fn the_free_permits_are_divided_and_an_account_at_its_limit_gets_none() {
        let permits = RunPermits::new(64, 32);
        let accounts: Vec<Uuid> = (1..=8).map(Uuid::from_u128).collect();
        assert_eq!(limits(&permits, &accounts[..1]), [32]);
        assert_eq!(limits(&permits, &accounts), [8; 8]);
        let held: Vec<_> = (0..32).map(|_| permits.acquire(ONE)).collect();
        assert_eq!(limits(&permits, &accounts[..2]), [16]);
        drop(held);
        assert_eq!(limits(&permits, &accounts[..2]), [32, 32]);
        assert!(permits.used().accounts.is_empty());
    }

    #[test]
    fn a_few_accounts_with_long_runs_never_take_all_permits() {
        let permits = RunPermits::new(64, 32);
        let mut held = Vec::new();
        for number in 1..=5 {
            let account = Uuid::from_u128(number);
            for _ in 0..limits(&permits, &[account])[0] {
                held.push(permits.acquire(account));
            }
        }
        assert_eq!(limits(&permits, &[Uuid::from_u128(9)]), [1]);
    }

    #[test]
    fn the_end_of_a_walk_releases_the_accounts_permit_before_the_end_is_stored() {
        let permits = RunPermits::new(2, 1);
        let mut permit = permits.acquire(ONE);
        assert!(limits(&permits, &[ONE]).is_empty());
        permit.release_account();
        assert_eq!(limits(&permits, &[ONE]), [1]);
        assert_eq!(permits.used().total, 1);
    }
}
