//! Deletes bytes in the object store: of uploads that expired, of blobs without a reference, of deleted accounts.
//!
//! Postgres is the source of truth for what is due; after a kill at any point it is still due. Bytes that can't be deleted
//! are postponed and block no others.

use std::collections::BTreeMap;
use std::time::SystemTime;

use blobs::Name;
use chrono::TimeDelta;
use service::Rounds;
use uuid::Uuid;

use super::kept_files;
use crate::jobs::previews;
use crate::metrics;
use crate::periodic::expiry::delete_expired;
use crate::state::JobState;

/// Rows handled by one transaction.
const BATCH: i64 = 100;
/// After this many failures in one run, the object store counts as unavailable.
const MAX_FAILURES: usize = 10;

/// Deletes everything that is due.
pub(crate) async fn delete_unreferenced(state: &JobState, rounds: &Rounds) -> anyhow::Result<()> {
    delete_expired_uploads(state, rounds).await?;
    delete_abandoned_deploys(state, rounds).await?;
    kept_files::delete_expired(state, rounds).await?;
    previews::expire_due(state, rounds).await?;
    // Uploaded form files without a submitted form.
    let (ttl, delete) = (state.garbage_collection.unbound_file_ttl, store::form_files::delete_unbound);
    delete_expired(state, rounds, ttl, BATCH, &metrics::FORM_FILES_EXPIRED, delete).await?;
    let mut failures = Failures::default();
    while failures.count(delete_next_blob(state).await?)? {
        rounds.progress();
    }
    while failures.count(purge_next_account(state, rounds).await?)? {
        rounds.progress();
    }
    Ok(())
}

/// The result of deleting one item.
enum DeleteResult {
    Deleted,
    /// Deleting failed; the item is postponed.
    Postponed(blobs::Error),
    NothingDue,
}

/// The number of failures in one run.
#[derive(Default)]
struct Failures(usize);

impl Failures {
    /// Returns whether more items may be due. Fails after [`MAX_FAILURES`] failures.
    fn count(&mut self, result: DeleteResult) -> anyhow::Result<bool> {
        match result {
            DeleteResult::Deleted => Ok(true),
            DeleteResult::NothingDue => Ok(false),
            DeleteResult::Postponed(error) => {
                metrics::BLOBS_POSTPONED.add(1, &[]);
                self.0 += 1;
                anyhow::ensure!(self.0 < MAX_FAILURES, error);
                tracing::warn!(%error, "deleting bytes failed and is retried later");
                Ok(true)
            }
        }
    }
}

/// Releases the storage reserved for expired uploads and deletes the rows they were for.
async fn delete_expired_uploads(state: &JobState, rounds: &Rounds) -> anyhow::Result<()> {
    loop {
        rounds.progress();
        let mut tx = store::begin(&state.maintenance_db).await?;
        let mut expired = store::uploads::delete_expired(&mut tx, state.clock.now(), BATCH).await?;
        // A common lock order for job-runners that release storage of the same accounts.
        expired.sort_by_key(|upload| upload.account_id);
        let count = i64::try_from(expired.len())?;
        for upload in expired {
            if upload.is_stored {
                continue;
            }
            if !upload.is_asset {
                // Frees a visitor's allowance at once, not only when uploaded files would expire.
                store::form_files::delete_unsent(&mut tx, upload.account_id, upload.id).await?;
                continue;
            }
            // The same lock order as deleting the asset or its page.
            store::usage::lock(&mut tx, upload.account_id).await?;
            if let Some(asset) = store::assets::delete_asset(&mut tx, upload.account_id, upload.id).await? {
                store::usage::release_bytes(&mut tx, upload.account_id, asset.size_bytes).await?;
            }
        }
        store::commit(tx).await?;
        metrics::UPLOADS_EXPIRED.add(count.unsigned_abs(), &[]);
        if count < BATCH {
            return Ok(());
        }
    }
}

async fn delete_abandoned_deploys(state: &JobState, rounds: &Rounds) -> anyhow::Result<()> {
    let now = state.clock.now();
    let before = now - TimeDelta::from_std(state.garbage_collection.deploy_ttl)?;
    loop {
        rounds.progress();
        let mut tx = store::begin(&state.maintenance_db).await?;
        let abandoned = store::deploys::delete_abandoned(&mut tx, before, now, BATCH).await?;
        let count = i64::try_from(abandoned.len())?;
        // Once per account, because each call locks its blobs in their common order.
        let mut unneeded: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
        for deploy in abandoned {
            unneeded.entry(deploy.account_id).or_default().extend(deploy.blobs);
        }
        for (account_id, blobs) in unneeded {
            store::blobs::release_blobs(&mut tx, account_id, &blobs, now).await?;
        }
        store::commit(tx).await?;
        if count < BATCH {
            return Ok(());
        }
    }
}

/// Deletes one blob without a reference. Holds the row's lock while the bytes are deleted, so that no upload of the same
/// bytes comes in between.
async fn delete_next_blob(state: &JobState) -> anyhow::Result<DeleteResult> {
    let mut tx = store::begin(&state.maintenance_db).await?;
    let Some(blob) = store::blobs::lock_unreferenced(&mut tx, state.clock.now()).await? else {
        store::commit(tx).await?;
        return Ok(DeleteResult::NothingDue);
    };
    let name = Name { account_id: blob.account_id, sha256: blob.sha256 };
    if let Err(error) = state.blobs.delete(name).await {
        let later = state.clock.now() + state.garbage_collection.retry_interval;
        store::blobs::postpone_blob(&mut tx, blob.account_id, blob.id, later).await?;
        store::commit(tx).await?;
        return Ok(DeleteResult::Postponed(error));
    }
    store::blobs::delete_blob(&mut tx, blob.account_id, blob.id).await?;
    store::commit(tx).await?;
    metrics::BLOBS_DELETED.add(1, &[]);
    Ok(DeleteResult::Deleted)
}

async fn purge_next_account(state: &JobState, rounds: &Rounds) -> anyhow::Result<DeleteResult> {
    let mut tx = store::begin(&state.maintenance_db).await?;
    let Some((account_id, is_second_pass)) = store::blobs::lock_due_purge(&mut tx, state.clock.now()).await?
    else {
        return Ok(DeleteResult::NothingDue);
    };
    let deleted = match rounds.long_part(state.blobs.delete_account(account_id)).await {
        Ok(deleted) => deleted,
        Err(error) => {
            let later = state.clock.now() + state.garbage_collection.retry_interval;
            store::blobs::postpone_purge(&mut tx, account_id, later).await?;
            store::commit(tx).await?;
            return Ok(DeleteResult::Postponed(error));
        }
    };
    let now = state.clock.now();
    let second_pass_at = (!is_second_pass).then_some(now + state.purge.second_pass_after);
    store::blobs::finish_purge(&mut tx, account_id, now, second_pass_at).await?;
    store::commit(tx).await?;
    metrics::BLOBS_DELETED.add(deleted, &[]);
    Ok(DeleteResult::Deleted)
}

/// Deletes uploads that a killed service left half-written.
pub(crate) async fn delete_orphans(state: &JobState) -> anyhow::Result<()> {
    let before = state.clock.now() - TimeDelta::from_std(state.garbage_collection.orphan_min_age)?;
    let deleted = state.blobs.delete_orphans(SystemTime::from(before)).await?;
    metrics::BLOBS_ORPHANED.add(deleted, &[]);
    Ok(())
}
