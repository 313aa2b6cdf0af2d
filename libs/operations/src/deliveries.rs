//! Retries of failed webhook deliveries.

use anyhow::Result;
use serde_json::json;
use store::deliveries::{FailedFilter, retry_all_failed};
use store::{Conn, Db};

use crate::audit::Operator;

pub use store::deliveries::{FailedDeliveries, FailedFilter as Filter};

/// Deliveries of one transaction.
const BATCH: i64 = 1_000;

/// Counts the deliveries that a retry would send, and those of inactive webhooks, which it would not.
pub async fn count(conn: &mut Conn, filter: &FailedFilter) -> Result<FailedDeliveries> {
    Ok(store::deliveries::count_failed(conn, filter).await?)
}

/// Makes these deliveries due now, a thousand at a time, earliest first. Returns how many. Job-runners send them as fast as their
/// limits allow. It may be stopped: those made due so far are sent.
pub async fn retry(
    db: &Db,
    operator: &Operator,
    filter: &FailedFilter,
    mut report: impl FnMut(u64),
) -> Result<u64> {
    let mut retried = 0;
    loop {
        let mut tx = store::begin(db).await?;
        let batch = retry_all_failed(&mut tx, filter, BATCH).await?;
        if batch > 0 {
            let target = filter.webhook_id.or(filter.account_id).map(|id| id.to_string());
            let detail = json!({
                "since": filter.since,
                "until": filter.until,
                "canceled": filter.includes_canceled,
                "deliveries": batch,
            });
            operator.record(&mut tx, "deliveries retry", target.as_deref(), detail).await?;
        }
        store::commit(tx).await?;
        retried += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(retried);
        }
        report(retried);
    }
}
