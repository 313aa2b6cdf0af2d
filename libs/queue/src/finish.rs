//! Tells Redis which jobs are done, many at a time: under load one call clears what gathered during the last.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::lease::{Held, Leases};
use crate::ledger::Ledger;

const AT_ONCE: usize = 256;
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Runs until every sender is gone and everything sent has been told.
pub(crate) async fn run(ledger: Arc<Ledger>, leases: Leases, mut done: mpsc::UnboundedReceiver<Held>) {
    let mut gathered = Vec::with_capacity(AT_ONCE);
    while done.recv_many(&mut gathered, AT_ONCE).await > 0 {
        while let Err(error) = ledger.finish(&gathered).await {
            tracing::warn!(%error, jobs = gathered.len(), "finished jobs couldn't be taken off the queue yet");
            pause().await;
        }
        leases.remove(&gathered);
        gathered.clear();
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause before Redis is tried again")]
async fn pause() {
    tokio::time::sleep(AFTER_ERROR).await;
}
