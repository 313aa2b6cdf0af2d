//! Questions to the warehouse: so many at once, of which one account has no more than its share, and each within
//! limits. One that is too large is refused with a word on what to change; nobody waits for ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Complaint;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;
use warehouse::{Excess, Limits};
use web::{Code, Problem};

/// Section `[analytics]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analytics {
    /// How long one question may take in all, however many statements it needs.
    #[serde(with = "service::config::duration")]
    pub time: Duration,
    /// How many MiB of memory one statement may use.
    pub memory_mib: u64,
    /// How many rows one statement may read.
    pub rows: u64,
    /// Questions answered at once.
    pub at_once: usize,
    /// Of these, of one account.
    pub at_once_per_account: usize,
    /// How long a question waits for its turn.
    #[serde(with = "service::config::duration")]
    pub patience: Duration,
}

/// The turns that questions take.
#[derive(Debug)]
pub struct QueryAdmission {
    config: Analytics,
    all: Arc<Semaphore>,
    accounts: Mutex<HashMap<Uuid, Arc<Semaphore>>>,
}

/// A question's turn; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct QueryPermit {
    _of_account: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl QueryAdmission {
    /// Nobody asks yet.
    pub(crate) fn new(config: &Analytics) -> Self {
        let all = Arc::new(Semaphore::new(config.at_once));
        Self { config: config.clone(), all, accounts: Mutex::default() }
    }

    /// What a question may take.
    pub(crate) fn limits(&self) -> Limits {
        let Analytics { time, memory_mib, rows, .. } = self.config;
        Limits { time, memory_bytes: memory_mib << 20, rows }
    }

    /// A turn, first of the account's own, then of all: whoever asks much waits behind themselves.
    pub(crate) async fn acquire(&self, account_id: Uuid) -> Result<QueryPermit, Problem> {
        let (own, all) = (self.account_semaphore(account_id), Arc::clone(&self.all));
        let turn = async {
            let of_account = own.acquire_owned().await.ok()?;
            Some(QueryPermit { _of_account: of_account, _of_all: all.acquire_owned().await.ok()? })
        };
        match tokio::time::timeout(self.config.patience, turn).await {
            Ok(Some(turn)) => Ok(turn),
            Ok(None) | Err(_) => Err(busy()),
        }
    }

    fn account_semaphore(&self, account_id: Uuid) -> Arc<Semaphore> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever asks nothing now has nothing to remember.
        accounts.retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = || Arc::new(Semaphore::new(self.config.at_once_per_account));
        Arc::clone(accounts.entry(account_id).or_insert_with(turns))
    }
}

fn busy() -> Problem {
    let detail = "too many questions are being answered right now";
    Problem::new(Code::Unavailable, detail).hint("ask one after the other").retry_after(5)
}

/// What to say of a question that was not answered.
pub(crate) fn query_problem(error: warehouse::Error) -> Problem {
    match error.excess() {
        None => Problem::from(error),
        Some(Excess::Rows) => {
            let message = "there are too many events in this period to be looked at in one question: ask for fewer days";
            Problem::validation(vec![Complaint::new("period", "too_many", message)])
        }
        Some(Excess::TimeOrMemory) => {
            tracing::warn!(%error, "a question took too much");
            let detail = "this question took too long to answer";
            Problem::new(Code::Unavailable, detail)
                .hint("ask for fewer days, or without a breakdown")
                .retry_after(10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query_admission(at_once: usize, per_account: usize) -> QueryAdmission {
        QueryAdmission::new(&Analytics {
            time: Duration::from_secs(1),
            memory_mib: 1,
            rows: 1,
            at_once,
            at_once_per_account: per_account,
            patience: Duration::from_millis(20),
        })
    }

    #[tokio::test]
    async fn an_account_that_asks_much_leaves_turns_to_others() {
        let query_admission = query_admission(3, 2);
        let (much, little) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let first = query_admission.acquire(much).await.unwrap();
        let _second = query_admission.acquire(much).await.unwrap();
        assert_eq!(query_admission.acquire(much).await.unwrap_err().code(), Code::Unavailable);
        let _other = query_admission.acquire(little).await.unwrap();
        assert_eq!(query_admission.acquire(Uuid::from_u128(3)).await.unwrap_err().code(), Code::Unavailable);
        drop(first);
        assert!(query_admission.acquire(much).await.is_ok());
    }

    #[tokio::test]
    async fn accounts_that_ask_nothing_are_forgotten() {
        let query_admission = query_admission(3, 2);
        for account in 0..100 {
            drop(query_admission.acquire(Uuid::from_u128(account)).await.unwrap());
        }
        assert_eq!(query_admission.accounts.lock().unwrap().len(), 1);
    }
}
