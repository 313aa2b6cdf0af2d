//! Stores the results of attempts in batches. Attempts that complete during one commit, and within `batch_window` after
//! it, form the next batch.

use std::time::Duration;

use domain::Transient as _;
use store::deliveries::{AttemptOutcome, complete_attempts};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::state::JobState;

const MAX_BATCH: usize = 512;
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The result of an attempt, to be stored.
pub(crate) struct Completion {
    pub(crate) delivery_id: Uuid,
    pub(crate) attempt: i32,
    pub(crate) outcome: AttemptOutcome,
    /// Dropped once the result is stored or given up.
    pub(crate) stored: oneshot::Sender<()>,
}

/// Runs until every sender is dropped and every received completion is stored or given up. A batch that can't be stored
/// within `timeout` is given up.
pub(crate) async fn run(
    state: JobState,
    timeout: Duration,
    batch_window: Duration,
    mut completions: mpsc::UnboundedReceiver<Completion>,
) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while completions.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let (rows, waiting): (Vec<_>, Vec<_>) =
            batch.drain(..).map(|one| ((one.delivery_id, one.attempt, one.outcome), one.stored)).unzip();
        match tokio::time::timeout(timeout, store_batch(&state, &rows)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(error = format!("{error:#}"), "storing a batch of completions failed");
                store_one_by_one(&state, rows).await;
            }
            // The leases have expired or will soon: the deliveries are sent again under the same ids.
            Err(_elapsed) => tracing::warn!(attempts = rows.len(), "storing completions timed out"),
        }
        drop(waiting);
        pause(batch_window).await;
    }
}

/// Stores all rows in one statement and retries while Postgres is unavailable.
async fn store_batch(state: &JobState, rows: &[(Uuid, i32, AttemptOutcome)]) -> Result<(), store::Error> {
    loop {
        let stored = async {
            let mut conn = store::acquire(&state.deliveries_db).await?;
            complete_attempts(&mut conn, rows).await
        };
        match stored.await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, attempts = rows.len(), "Postgres is unavailable; storing completions is retried");
                pause(RETRY_INTERVAL).await;
            }
            result => return result,
        }
    }
}

/// Stores each row by itself, so that an invalid one does not fail the others.
async fn store_one_by_one(state: &JobState, rows: Vec<(Uuid, i32, AttemptOutcome)>) {
    for row in rows {
        let delivery_id = row.0;
        if let Err(error) = store_batch(state, &[row]).await {
            tracing::error!(error = format!("{error:#}"), %delivery_id, "storing a completion failed; the attempt is repeated after its lease");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause before a retry, or while a batch fills")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
