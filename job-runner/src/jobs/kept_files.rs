//! Deletes the files that sites kept from replaced deploys after they expired. The edge finds them
//! no more from that moment on; answers that it has cached may show them for a minute.

use chrono::TimeDelta;
use service::Rounds;
use store::deploys::kept_files::{self, Filter};
use uuid::Uuid;

use crate::metrics;
use crate::state::JobState;

/// Accounts listed by one statement.
const BATCH: i64 = 100;
/// How long the bytes stay: an edge may have looked a file up just before it expired.
const CACHED_FOR: TimeDelta = TimeDelta::minutes(10);

/// Deletes all expired files and releases the storage that they took.
pub(crate) async fn delete_expired(state: &JobState, rounds: &Rounds) -> anyhow::Result<()> {
    loop {
        rounds.progress();
        let mut conn = store::acquire(&state.maintenance_db).await?;
        let accounts = kept_files::list_accounts_with_expired(&mut conn, state.clock.now(), BATCH).await?;
        drop(conn);
        for account_id in &accounts {
            rounds.progress();
            delete_of_account(state, *account_id).await?;
        }
        if accounts.len() < usize::try_from(BATCH)? {
            return Ok(());
        }
    }
}

async fn delete_of_account(state: &JobState, account_id: Uuid) -> anyhow::Result<()> {
    let now = state.clock.now();
    let mut tx = store::begin(&state.maintenance_db).await?;
    store::usage::lock(&mut tx, account_id).await?;
    let expired = Filter { expired_at: Some(now), ..Filter::default() };
    let deleted = kept_files::delete_kept(&mut tx, account_id, expired).await?;
    store::usage::release_bytes(&mut tx, account_id, deleted.bytes).await?;
    store::blobs::release_blobs(&mut tx, account_id, &deleted.blobs, now + CACHED_FOR).await?;
    store::commit(tx).await?;
    metrics::KEPT_FILES_DELETED.add(deleted.blobs.len() as u64, &[]);
    Ok(())
}
