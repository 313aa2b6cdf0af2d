//! How many exports are under way: few at once, and of these a share for each account, so that a slow reader keeps nobody
//! else from theirs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;
use web::{Code, Problem};

/// Seconds after which it is worth to ask again.
const COME_BACK_SECONDS: u64 = 10;

/// The places for exports.
#[derive(Debug)]
pub struct Exports {
    room: Arc<Semaphore>,
    held: Held,
    share: usize,
    /// How long one waits for a place.
    queue_timeout: Duration,
    /// How long a reader may take nothing.
    pub stall_timeout: Duration,
    /// How long an export may take.
    pub timeout: Duration,
}

type Held = Arc<Mutex<HashMap<Uuid, usize>>>;

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub struct ExportPermit {
    _share: Share,
    _permit: OwnedSemaphorePermit,
}

impl Exports {
    pub(crate) fn new(config: &crate::config::Exports) -> Self {
        Self {
            room: Arc::new(Semaphore::new(config.at_once)),
            held: Held::default(),
            share: config.per_account,
            queue_timeout: config.wait,
            stall_timeout: config.patience,
            timeout: config.within,
        }
    }

    /// A place for an export of the account.
    ///
    /// # Errors
    /// It has as many as it may, or all are taken: come back.
    pub async fn acquire(&self, account_id: Uuid) -> Result<ExportPermit, Problem> {
        let Some(share) = Share::take(&self.held, account_id, self.share) else {
            let detail = format!("an account has at most {} exports under way", self.share);
            return Err(Problem::new(Code::RateLimited, detail).retry_after(COME_BACK_SECONDS));
        };
        let room = Arc::clone(&self.room).acquire_owned();
        match tokio::time::timeout(self.queue_timeout, room).await {
            Ok(Ok(permit)) => Ok(ExportPermit { _share: share, _permit: permit }),
            _ => {
                let detail = "as many exports are under way as there may be; nothing was changed";
                Err(Problem::new(Code::Unavailable, detail).retry_after(COME_BACK_SECONDS))
            }
        }
    }
}

/// One of an account's exports.
#[derive(Debug)]
struct Share {
    held: Held,
    account_id: Uuid,
}

impl Share {
    fn take(held: &Held, account_id: Uuid, most: usize) -> Option<Self> {
        // Whatever happened to who held the lock, numbers are whole.
        let mut numbers = held.lock().unwrap_or_else(PoisonError::into_inner);
        let number = numbers.entry(account_id).or_default();
        (*number < most).then(|| {
            *number += 1;
            Self { held: Arc::clone(held), account_id }
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut numbers = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.get_mut(&self.account_id) {
            *number -= 1;
            if *number == 0 {
                numbers.remove(&self.account_id);
            }
        }
    }
}
