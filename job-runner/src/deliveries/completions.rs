//! Stores the results of attempts in batches. Attempts that complete during one commit, and within `batch_window` after
//! it, form the next batch.

use std::time::Duration;

use domain::Transient as _;
use service::Rounds;
use store::deliveries::{AttemptOutcome, complete_attempts};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
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
    #[expect(dead_code, reason = "the receiver waits for its drop")]
    pub(crate) stored: oneshot::Sender<()>,
    /// When it is given up: its lease has expired or will soon, and the delivery is sent again under the same id.
    pub(crate) give_up_at: Instant,
}

impl Completion {
    fn row(&self) -> (Uuid, i32, AttemptOutcome) {
        (self.delivery_id, self.attempt, self.outcome.clone())
    }
}

/// Runs until every sender is dropped and every received completion is stored or given up.
pub(crate) async fn run(
    state: JobState,
    rounds: Rounds,
    batch_window: Duration,
    mut completions: mpsc::UnboundedReceiver<Completion>,
) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    loop {
        // Deliveries that were locked are tried again together with those that completed meanwhile.
        let is_retry = !batch.is_empty();
        while batch.len() < MAX_BATCH
            && let Ok(completion) = completions.try_recv()
        {
            batch.push(completion);
        }
        if batch.is_empty() && completions.recv_many(&mut batch, MAX_BATCH).await == 0 {
            return;
        }
        batch = rounds.watch(store_or_give_up(&state, batch)).await;
        pause(if is_retry { RETRY_INTERVAL } else { batch_window }).await;
    }
}

/// Stores completions. Returns those of deliveries that another transaction has locked.
async fn store_or_give_up(state: &JobState, mut batch: Vec<Completion>) -> Vec<Completion> {
    let Some(give_up_at) = batch.iter().map(|one| one.give_up_at).max() else { return batch };
    let rows: Vec<_> = batch.iter().map(Completion::row).collect();
    let storing = async {
        match store_batch(state, &rows).await {
            Ok(locked) => locked,
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "storing a batch of completions failed");
                store_one_by_one(state, &rows).await
            }
        }
    };
    let Ok(locked) = tokio::time::timeout_at(give_up_at, storing).await else {
        tracing::warn!(attempts = rows.len(), "storing completions timed out");
        return Vec::new();
    };
    batch.retain(|one| locked.contains(&one.delivery_id) && Instant::now() < one.give_up_at);
    batch
}

/// Stores all rows in one statement and retries while Postgres is unavailable. Returns the deliveries that are locked.
async fn store_batch(
    state: &JobState,
    rows: &[(Uuid, i32, AttemptOutcome)],
) -> Result<Vec<Uuid>, store::Error> {
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

/// Stores each row by itself, so that an invalid one does not fail the others. Returns the deliveries that are locked.
async fn store_one_by_one(state: &JobState, rows: &[(Uuid, i32, AttemptOutcome)]) -> Vec<Uuid> {
    let mut all_locked = Vec::new();
    for row in rows {
        let delivery_id = row.0;
        match store_batch(state, std::slice::from_ref(row)).await {
            Ok(locked) => all_locked.extend(locked),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), %delivery_id, "storing a completion failed; the attempt is repeated after its lease");
            }
        }
    }
    all_locked
}

#[expect(clippy::disallowed_methods, reason = "the pause before a retry, or while a batch fills")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
