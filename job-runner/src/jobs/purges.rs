//! The end of trials nobody claimed: out of Postgres and every memory at once, out of ClickHouse soon after.
//!
//! In Postgres a trial ends in one transaction, a large one after some that only take from it; no lock is held for
//! long. The row that orders its events' deletion is written in the last one, so a kill at any point loses nothing.

use contract::Job;
use queue::Task;
use service::metrics;
use store::purges::{self, EventPurge};
use store::{mails, recipients, submissions, webhooks};
use uuid::Uuid;

use crate::Runner;

/// Trials looked up at once.
const TRIALS: i64 = 100;
/// Rows deleted in one transaction, of what an account may have without bound.
const ROWS: i64 = 5_000;
/// Deletions that ClickHouse is told of at once.
const EVENT_PURGES: i64 = 200;

/// Deletes every trial that nobody claimed in time. One that can't be deleted now stands in nobody's way.
pub(crate) async fn end_expired_trials(runner: &Runner) -> anyhow::Result<()> {
    loop {
        let now = runner.clock.now();
        let mut conn = store::acquire(&runner.db).await?;
        let expired = purges::list_expired(&mut conn, now, TRIALS).await?;
        drop(conn);
        let mut any_ended = false;
        for account_id in &expired {
            match end_trial(runner, *account_id).await {
                Ok(ended) => any_ended |= ended,
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(account.id = %account_id, error, "a trial's end waits for the next sweep");
                }
            }
        }
        if !any_ended || i64::try_from(expired.len())? < TRIALS {
            return Ok(());
        }
    }
}

/// Deletes a trial; `false` if it was claimed, or is being claimed or purged by somebody else.
async fn end_trial(runner: &Runner, account_id: Uuid) -> anyhow::Result<bool> {
    loop {
        let now = runner.clock.now();
        let mut tx = store::begin(&runner.db).await?;
        if !purges::lock_expired(&mut tx, account_id, now).await? {
            return Ok(false);
        }
        if purges::delete_bulk(&mut tx, account_id, ROWS).await? == ROWS {
            store::commit(tx).await?;
            continue;
        }
        purges::delete_account(&mut tx, account_id, now).await?;
        store::commit(tx).await?;
        metrics::counter("job_runner_trial_purge_total").add(1, &[]);
        tracing::info!(account.id = %account_id, "a trial that nobody claimed is gone");
        return Ok(true);
    }
}

/// Queues the deletion of events, if any is due.
pub(crate) async fn order_due(runner: &Runner) -> anyhow::Result<()> {
    let mut conn = store::acquire(&runner.db).await?;
    if purges::any_event_purge_due(&mut conn, runner.clock.now()).await? {
        let job = Job::PurgeEventsV1;
        runner.queue.push(vec![Task { id: job.name(), job, traceparent: None }]).await?;
    }
    Ok(())
}

/// Has ClickHouse forget what it must. Until it has confirmed, the rows stay and are due again.
pub(crate) async fn forget_events(runner: &Runner) -> anyhow::Result<()> {
    loop {
        let now = runner.clock.now();
        let mut conn = store::acquire(&runner.db).await?;
        let retry_at = now + runner.purge.retry_after;
        let due = purges::lease_event_purges(&mut conn, now, retry_at, EVENT_PURGES).await?;
        drop(conn);
        if due.is_empty() {
            return Ok(());
        }
        let sites: Vec<Uuid> = due.iter().filter_map(|purge| purge.site_id).collect();
        let whole = |purge: &&EventPurge| purge.site_id.is_none();
        let accounts: Vec<Uuid> = due.iter().filter(whole).map(|purge| purge.account_id).collect();
        runner.warehouse.delete_events(&accounts, &sites).await?;

        let now = runner.clock.now();
        let mut tx = store::begin(&runner.db).await?;
        purges::finish_event_purges(&mut tx, &due, now, now + runner.purge.again_after).await?;
        store::commit(tx).await?;
        metrics::counter("job_runner_event_purge_total").add(due.len() as u64, &[]);
    }
}

/// Deletes spam that is old, mails that nobody sends, and addresses that never said whether they want any.
pub(crate) async fn forget_submissions(runner: &Runner) -> anyhow::Result<()> {
    let mut conn = store::acquire(&runner.db).await?;
    let before = runner.clock.now() - runner.purge.spam_after;
    loop {
        let deleted = submissions::delete_old_spam(&mut conn, before, ROWS).await?;
        metrics::counter("job_runner_spam_purge_total").add(deleted.unsigned_abs(), &[]);
        if deleted < ROWS {
            break;
        }
    }
    let before = runner.clock.now() - runner.forget_mail_after;
    while mails::delete_unsent(&mut conn, before, ROWS).await? >= ROWS.unsigned_abs() {}
    let before = runner.clock.now() - runner.forget_asked_after;
    while recipients::delete_unanswered(&mut conn, before, ROWS).await? >= ROWS.unsigned_abs() {}
    Ok(())
}

/// Deletes secrets that were replaced and have had their time.
pub(crate) async fn forget_of_webhooks(runner: &Runner) -> anyhow::Result<()> {
    let mut conn = store::acquire(&runner.db).await?;
    webhooks::forget_old_secrets(&mut conn, runner.clock.now()).await?;
    Ok(())
}
