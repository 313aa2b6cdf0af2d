//! Admits exports of submissions: few at once, and fewer per account, so that slow clients don't block other accounts.

use std::time::Duration;

use service::admission::{Admission, Permit, Rejected};
use store::ExportDb;
use uuid::Uuid;
use web::{Code, Problem};

/// `Retry-After` of a rejected export.
const RETRY_AFTER_SECONDS: u64 = 10;

/// A running export's permit.
pub type ExportPermit = Permit<Uuid>;

/// The limits of exports.
#[derive(Debug)]
pub struct Exports {
    admission: Admission<Uuid>,
    max_per_account: usize,
    /// The database to export from.
    pub db: ExportDb,
    /// How long a client may read nothing.
    pub stall_timeout: Duration,
    /// Upper bound of an export's duration.
    pub timeout: Duration,
}

impl Exports {
    pub(crate) fn new(config: &crate::config::Exports, db: ExportDb) -> Self {
        let max_per_account = config.max_concurrent_per_account;
        Self {
            admission: Admission::new(config.max_concurrent, max_per_account, config.queue_timeout),
            max_per_account,
            db,
            stall_timeout: config.stall_timeout,
            timeout: config.timeout,
        }
    }

    /// Waits for a permit. Returns 429 at once if the account has all of its own, and 503 after the queue timeout.
    pub async fn acquire(&self, account_id: Uuid) -> Result<ExportPermit, Problem> {
        self.admission.acquire_without_key_queue(account_id).await.map_err(|rejected| {
            let (code, detail) = match rejected {
                Rejected::KeyLimit => {
                    let max = self.max_per_account;
                    (Code::RateLimited, format!("an account can run at most {max} exports at once"))
                }
                Rejected::Timeout(_) => {
                    (Code::Unavailable, "too many exports are in progress; nothing was changed".to_owned())
                }
            };
            Problem::new(code, detail).retry_after(RETRY_AFTER_SECONDS)
        })
    }
}
