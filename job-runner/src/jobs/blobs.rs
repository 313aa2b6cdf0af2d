//! Letting go of bytes: of uploads that never came, of what nothing refers to any more, of accounts that are gone.
//!
//! Postgres says what is due; a kill at any point leaves it due. What can't be deleted is left for later, and keeps
//! nothing else.

use std::time::SystemTime;

use blobs::Name;
use chrono::TimeDelta;
use service::metrics;

use crate::Runner;

/// Uploads or deploys looked at in one transaction.
const BATCH: i64 = 100;
/// When so many couldn't be deleted in one go, it is the object store that is away.
const FAILURES_MAX: usize = 10;

/// Lets go of everything that is due.
pub(crate) async fn let_go(runner: &Runner) -> anyhow::Result<()> {
    end_expired_uploads(runner).await?;
    end_abandoned_deploys(runner).await?;
    end_unbound_files(runner).await?;
    let mut failures = Failures::default();
    while failures.go_on(delete_one_unneeded(runner).await?)? {}
    while failures.go_on(purge_one_account(runner).await?)? {}
    Ok(())
}

/// What became of one.
enum Gone {
    Deleted,
    /// It couldn't be, and is put off.
    PutOff(blobs::Error),
    /// There was none.
    Nothing,
}

/// How many couldn't be deleted in one go.
#[derive(Default)]
struct Failures(usize);

impl Failures {
    /// Whether there may be more to delete.
    ///
    /// # Errors
    /// Too much can't be deleted.
    fn go_on(&mut self, after: Gone) -> anyhow::Result<bool> {
        match after {
            Gone::Deleted => Ok(true),
            Gone::Nothing => Ok(false),
            Gone::PutOff(error) => {
                metrics::counter("job_runner_blob_put_off_total").add(1, &[]);
                self.0 += 1;
                anyhow::ensure!(self.0 < FAILURES_MAX, error);
                tracing::warn!(%error, "bytes that couldn't be deleted are left for later");
                Ok(true)
            }
        }
    }
}

/// What was reserved for an upload that never came is given back, and what it was for is no more.
async fn end_expired_uploads(runner: &Runner) -> anyhow::Result<()> {
    loop {
        let mut tx = store::begin(&runner.db).await?;
        let mut expired = store::uploads::delete_expired(&mut tx, runner.clock.now(), BATCH).await?;
        // Two runners that give back to the same accounts do so in the same order.
        expired.sort_by_key(|upload| upload.account_id);
        let count = i64::try_from(expired.len())?;
        for upload in expired {
            if upload.is_stored {
                continue;
            }
            if !upload.is_asset {
                // A visitor's allowance is free again at once, not when files that came would go.
                store::form_files::delete_unsent(&mut tx, upload.account_id, upload.id).await?;
                continue;
            }
            // As whoever deletes the asset, or its page.
            store::usage::lock(&mut tx, upload.account_id).await?;
            if let Some(asset) = store::assets::delete_asset(&mut tx, upload.account_id, upload.id).await? {
                store::usage::give_back_bytes(&mut tx, upload.account_id, asset.size_bytes).await?;
            }
        }
        store::commit(tx).await?;
        metrics::counter("job_runner_upload_expire_total").add(count.unsigned_abs(), &[]);
        if count < BATCH {
            return Ok(());
        }
    }
}

async fn end_abandoned_deploys(runner: &Runner) -> anyhow::Result<()> {
    let now = runner.clock.now();
    let before = now - TimeDelta::from_std(runner.tidy.abandoned_after)?;
    loop {
        let mut tx = store::begin(&runner.db).await?;
        let abandoned = store::deploys::delete_abandoned(&mut tx, before, now, BATCH).await?;
        let count = i64::try_from(abandoned.len())?;
        for (account_id, zip) in abandoned {
            store::blobs::release_blobs(&mut tx, account_id, zip.as_slice(), now).await?;
        }
        store::commit(tx).await?;
        if count < BATCH {
            return Ok(());
        }
    }
}

/// Files that nobody handed in with a form after all.
async fn end_unbound_files(runner: &Runner) -> anyhow::Result<()> {
    let before = runner.clock.now() - TimeDelta::from_std(runner.tidy.unbound_after)?;
    let mut conn = store::acquire(&runner.db).await?;
    loop {
        let deleted = store::form_files::delete_unbound(&mut conn, before, BATCH).await?;
        metrics::counter("job_runner_form_file_expire_total").add(deleted, &[]);
        if deleted < BATCH.unsigned_abs() {
            return Ok(());
        }
    }
}

/// The row's lock is held while its bytes are deleted, so that no upload of the same bytes comes in between.
async fn delete_one_unneeded(runner: &Runner) -> anyhow::Result<Gone> {
    let mut tx = store::begin(&runner.db).await?;
    let Some(blob) = store::blobs::lock_unneeded(&mut tx, runner.clock.now()).await? else {
        store::commit(tx).await?;
        return Ok(Gone::Nothing);
    };
    let name = Name { account_id: blob.account_id, sha256: blob.sha256 };
    if let Err(error) = runner.blobs.delete(name).await {
        let later = runner.clock.now() + runner.tidy.retry_after;
        store::blobs::put_off_blob(&mut tx, blob.account_id, blob.id, later).await?;
        store::commit(tx).await?;
        return Ok(Gone::PutOff(error));
    }
    store::blobs::delete_blob(&mut tx, blob.account_id, blob.id).await?;
    store::commit(tx).await?;
    metrics::counter("job_runner_blob_delete_total").add(1, &[]);
    Ok(Gone::Deleted)
}

async fn purge_one_account(runner: &Runner) -> anyhow::Result<Gone> {
    let mut tx = store::begin(&runner.db).await?;
    let Some((account_id, again)) = store::blobs::lock_due_purge(&mut tx, runner.clock.now()).await? else {
        return Ok(Gone::Nothing);
    };
    let deleted = match runner.blobs.delete_account(account_id).await {
        Ok(deleted) => deleted,
        Err(error) => {
            let later = runner.clock.now() + runner.tidy.retry_after;
            store::blobs::put_off_purge(&mut tx, account_id, later).await?;
            store::commit(tx).await?;
            return Ok(Gone::PutOff(error));
        }
    };
    let now = runner.clock.now();
    let again_at = (!again).then_some(now + runner.purge.again_after);
    store::blobs::finish_purge(&mut tx, account_id, now, again_at).await?;
    store::commit(tx).await?;
    metrics::counter("job_runner_blob_delete_total").add(deleted, &[]);
    Ok(Gone::Deleted)
}

/// Forgets what killed services left halfway.
pub(crate) async fn forget_stranded(runner: &Runner) -> anyhow::Result<()> {
    let before = runner.clock.now() - TimeDelta::from_std(runner.tidy.stranded_after)?;
    let deleted = runner.blobs.delete_stranded(SystemTime::from(before)).await?;
    metrics::counter("job_runner_blob_strand_total").add(deleted, &[]);
    Ok(())
}
