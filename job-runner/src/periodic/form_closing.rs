//! Notifies webhooks of forms that closed at their closing time. Due forms are stored in Postgres, so a form that closed
//! while no job-runner ran is handled later, and of several job-runners only one handles each form.

use domain::Transient;
use service::{Rounds, Shutdown, every, ticks};
use store::forms::{close_form, list_closing};
use store::submissions::WriteContext;
use uuid::Uuid;

use crate::config::Polling;
use crate::metrics;
use crate::state::JobState;

/// Forms listed by one query.
const BATCH: i64 = 100;

pub(crate) async fn run(
    state: JobState,
    config: Polling,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    every(&rounds, ticks(config.poll_interval), &shutdown, || close_due(&state, &rounds)).await
}

/// Closes each form in a transaction of its own, so that a failing one blocks no other.
async fn close_due(state: &JobState, rounds: &Rounds) -> Result<(), store::Error> {
    loop {
        let mut conn = store::acquire(&state.db).await?;
        let forms = list_closing(&mut conn, state.clock.now(), BATCH).await?;
        drop(conn);
        let mut closed_count = 0;
        for (account_id, id) in &forms {
            rounds.progress();
            match close(state, *account_id, *id).await {
                Ok(closed) => closed_count += usize::from(closed),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => tracing::error!(%error, form.id = %id, "closing a form failed"),
            }
        }
        // If none could be closed, the remaining forms are locked by edits or by other job-runners.
        if closed_count == 0 || forms.len() < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            return Ok(());
        }
    }
}

async fn close(state: &JobState, account_id: Uuid, id: Uuid) -> Result<bool, store::Error> {
    let now = state.clock.now();
    let new_id = || state.rng.uuid_v7(now);
    let writer = WriteContext { now, traceparent: None, depth: 0, new_id: &new_id };
    let mut tx = store::begin(&state.db).await?;
    let closed = close_form(&mut tx, account_id, id, &writer).await?;
    store::commit(tx).await?;
    let Some((reason, signal)) = closed else { return Ok(false) };
    metrics::FORMS_CLOSED.add(1, &[("reason", reason.as_str())]);
    if let Some(signal) = signal
        && let Err(error) = state.bus.publish(&signal).await
    {
        tracing::warn!(%error, "publishing a signal failed; the next poll finds the deliveries of a closed form");
    }
    Ok(true)
}
