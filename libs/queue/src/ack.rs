//! Acknowledges completed jobs in Redis. Jobs that complete during one call form the next batch.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::lease::{LeaseKey, Leases};
use crate::redis::RedisQueue;

const MAX_BATCH: usize = 256;
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Runs until every sender is dropped and every received job is acknowledged.
pub(crate) async fn run(redis: Arc<RedisQueue>, leases: Leases, mut done: mpsc::UnboundedReceiver<LeaseKey>) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while done.recv_many(&mut batch, MAX_BATCH).await > 0 {
        while let Err(error) = redis.ack(&batch).await {
            tracing::warn!(%error, jobs = batch.len(), "acknowledging completed jobs failed and is retried");
            pause().await;
        }
        leases.remove(&batch);
        batch.clear();
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause before the next attempt")]
async fn pause() {
    tokio::time::sleep(RETRY_INTERVAL).await;
}
