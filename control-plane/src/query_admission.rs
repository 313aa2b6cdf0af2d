//! Admits analytics queries: a bounded number at once and per account, each with limits on time, memory and rows. A
//! query beyond its limits is rejected with advice on how to make it smaller.

use std::time::Duration;

use domain::FieldError;
use serde::Deserialize;
use service::admission::{Admission, Permit};
use uuid::Uuid;
use warehouse::{ExceededLimit, QueryLimits};
use web::{Code, Problem};

/// Section `[analytics]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analytics {
    /// Upper bound of a query's duration over all of its statements.
    #[serde(with = "service::config::duration")]
    pub timeout: Duration,
    /// MiB of memory per statement.
    pub max_memory_mib: u64,
    /// Rows read per statement.
    pub max_rows: u64,
    /// Queries in progress.
    pub max_concurrent: usize,
    /// Queries in progress per account.
    pub max_concurrent_per_account: usize,
    /// How long a query waits for its permit.
    #[serde(with = "service::config::duration")]
    pub queue_timeout: Duration,
}

/// A running query's permit.
pub(crate) type QueryPermit = Permit<Uuid>;

/// The limits of analytics queries.
#[derive(Debug)]
pub struct QueryAdmission {
    limits: QueryLimits,
    admission: Admission<Uuid>,
}

impl QueryAdmission {
    pub(crate) fn new(config: &Analytics) -> Self {
        let Analytics { timeout, max_memory_mib, max_rows, .. } = *config;
        let limits = QueryLimits { timeout, max_memory_bytes: max_memory_mib << 20, max_rows };
        let (total, per_account) = (config.max_concurrent, config.max_concurrent_per_account);
        Self { limits, admission: Admission::new(total, per_account, config.queue_timeout) }
    }

    /// The limits of each query.
    pub(crate) fn limits(&self) -> QueryLimits {
        self.limits
    }

    /// Waits for a permit, first of the account and then of the total, so that a busy account only delays itself.
    /// Returns 503 after the queue timeout.
    pub(crate) async fn acquire(&self, account_id: Uuid) -> Result<QueryPermit, Problem> {
        self.admission.acquire(account_id).await.map_err(|_timeout| {
            let detail = "too many analytics queries are in progress";
            Problem::new(Code::Unavailable, detail).hint("send one query after the other").retry_after(5)
        })
    }
}

/// Converts the error of a query into a problem.
pub(crate) fn query_problem(error: warehouse::Error) -> Problem {
    match error.exceeded_limit() {
        None => Problem::from(error),
        Some(ExceededLimit::Rows) => {
            let message = "this period has too many events for one query: request fewer days";
            Problem::validation(vec![FieldError::new("period", "too_many", message)])
        }
        Some(ExceededLimit::TimeOrMemory) => {
            tracing::warn!(%error, "an analytics query exceeded its time or memory limit");
            let detail = "this query exceeded its time or memory limit";
            Problem::new(Code::Unavailable, detail)
                .hint("request fewer days, or no breakdown")
                .retry_after(10)
        }
    }
}
