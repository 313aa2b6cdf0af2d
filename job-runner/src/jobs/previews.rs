//! Ends previews when their time is over: their hosts answer 404, and their files are deleted.

use contract::{Change, Signal};
use domain::Transient;
use service::Rounds;
use store::deploys::kept_files::Filter;
use uuid::Uuid;

use crate::metrics;
use crate::state::JobState;

/// Previews listed by one query.
const BATCH: i64 = 100;

/// Ends each expired preview in a transaction of its own, so that a failing one blocks no other.
pub(crate) async fn expire_due(state: &JobState, rounds: &Rounds) -> Result<(), store::Error> {
    loop {
        let mut conn = store::acquire(&state.maintenance_db).await?;
        let due = store::deploys::previews::list_expired(&mut conn, state.clock.now(), BATCH).await?;
        drop(conn);
        let mut ended = 0;
        for (account_id, deploy_id) in &due {
            rounds.progress();
            match expire(state, *account_id, *deploy_id).await {
                Ok(is_ended) => ended += usize::from(is_ended),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => tracing::error!(%error, deploy.id = %deploy_id, "ending a preview failed"),
            }
        }
        // If none could be ended, the remaining ones are being published or handled by other job-runners.
        if ended == 0 || due.len() < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            return Ok(());
        }
    }
}

async fn expire(state: &JobState, account_id: Uuid, deploy_id: Uuid) -> Result<bool, store::Error> {
    let now = state.clock.now();
    let mut tx = store::begin(&state.maintenance_db).await?;
    // The same lock order as publishing.
    store::usage::lock(&mut tx, account_id).await?;
    let filter = Filter { deploy_id: Some(deploy_id), expired_at: Some(now) };
    let ended = store::deploys::previews::end(&mut tx, account_id, filter, now).await?;
    let changes: Vec<Change> = ended.into_iter().map(|host| Change::Host { host }).collect();
    store::outbox::insert_changes(&mut tx, &changes, now).await?;
    store::commit(tx).await?;
    if changes.is_empty() {
        return Ok(false);
    }
    metrics::PREVIEWS_EXPIRED.add(1, &[]);
    // The relay notifies the edges. If this signal is lost, the relay polls anyway.
    if let Err(error) = state.bus.publish(&Signal::OutboxFilled).await {
        tracing::debug!(%error, "publishing a signal failed; the relay's next poll finds the ended preview");
    }
    Ok(true)
}
