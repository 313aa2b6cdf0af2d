//! Deletes expired trials: from Postgres and all caches at once, from ClickHouse soon after. Also deletes other data after
//! its retention.
//!
//! In Postgres a trial is deleted by one transaction, preceded for a large trial by transactions that delete part of its
//! rows, so no lock is held for long. The last transaction inserts the row that orders the deletion of its events, so a
//! kill at any point loses nothing.

use contract::Job;
use queue::Task;
use service::Rounds;
use store::purges::{self, EventPurge};
use store::{mails, recipients, submissions, webhooks};
use uuid::Uuid;

use crate::metrics;
use crate::state::JobState;

/// Trials listed by one query.
const TRIALS: i64 = 100;
/// Rows deleted by one transaction from tables in which an account may have any number.
const ROWS: i64 = 5_000;
/// Accounts and sites in one deletion of ClickHouse.
const EVENT_PURGES: i64 = 200;

/// Deletes every trial that was not claimed in time. A trial that can't be deleted now blocks no other.
pub(crate) async fn delete_expired_trials(state: &JobState, rounds: &Rounds) -> anyhow::Result<()> {
    loop {
        let now = state.clock.now();
        let mut conn = store::acquire(&state.maintenance_db).await?;
        let expired = purges::list_expired(&mut conn, now, TRIALS).await?;
        drop(conn);
        let mut any_deleted = false;
        for account_id in &expired {
            match delete_trial(state, *account_id, rounds).await {
                Ok(deleted) => any_deleted |= deleted,
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(account.id = %account_id, error, "deleting a trial failed and is retried by the next sweep");
                }
            }
        }
        if !any_deleted || i64::try_from(expired.len())? < TRIALS {
            return Ok(());
        }
    }
}

/// Deletes a trial. Returns `false` if it was claimed, or if another transaction is claiming or deleting it.
async fn delete_trial(state: &JobState, account_id: Uuid, rounds: &Rounds) -> anyhow::Result<bool> {
    loop {
        rounds.progress();
        let now = state.clock.now();
        let mut tx = store::begin(&state.maintenance_db).await?;
        if !purges::lock_expired(&mut tx, account_id, now).await? {
            return Ok(false);
        }
        if purges::delete_bulk(&mut tx, account_id, ROWS).await? == ROWS {
            store::commit(tx).await?;
            continue;
        }
        purges::rest_names(&mut tx, account_id, now, now + state.purge.name_retention).await?;
        purges::delete_account(&mut tx, account_id, now).await?;
        store::commit(tx).await?;
        metrics::TRIALS_PURGED.add(1, &[]);
        tracing::info!(account.id = %account_id, "deleted an unclaimed trial");
        return Ok(true);
    }
}

/// Queues the deletion of events if any is due.
pub(crate) async fn enqueue_due(state: &JobState) -> anyhow::Result<()> {
    let mut conn = store::acquire(&state.maintenance_db).await?;
    if purges::has_due_event_purge(&mut conn, state.clock.now()).await? {
        let job = Job::PurgeEventsV1;
        state.queue.push(vec![Task { id: job.name(), job, traceparent: None }]).await?;
    }
    Ok(())
}

/// Deletes due events in ClickHouse. Until ClickHouse confirms a deletion, its row stays and is due again.
pub(crate) async fn delete_events(state: &JobState) -> anyhow::Result<()> {
    loop {
        let now = state.clock.now();
        let mut conn = store::acquire(&state.maintenance_db).await?;
        let retry_at = now + state.purge.retry_interval;
        let due = purges::lease_event_purges(&mut conn, now, retry_at, EVENT_PURGES).await?;
        drop(conn);
        if due.is_empty() {
            return Ok(());
        }
        let sites: Vec<Uuid> = due.iter().filter_map(|purge| purge.site_id).collect();
        let is_whole_account = |purge: &&EventPurge| purge.site_id.is_none();
        let accounts: Vec<Uuid> = due.iter().filter(is_whole_account).map(|purge| purge.account_id).collect();
        state.warehouse.delete_events(&accounts, &sites).await?;

        let now = state.clock.now();
        let mut tx = store::begin(&state.maintenance_db).await?;
        purges::finish_event_purges(&mut tx, &due, now, now + state.purge.second_pass_after).await?;
        store::commit(tx).await?;
        metrics::EVENTS_PURGED.add(due.len() as u64, &[]);
    }
}

/// Deletes old spam, expired emails, and recipients that never answered whether they agree.
pub(crate) async fn delete_expired_submissions(state: &JobState, rounds: &Rounds) -> anyhow::Result<()> {
    let mut conn = store::acquire(&state.maintenance_db).await?;
    let before = state.clock.now() - state.purge.spam_retention;
    loop {
        rounds.progress();
        let deleted = submissions::delete_old_spam(&mut conn, before, ROWS).await?;
        metrics::SPAM_PURGED.add(deleted.unsigned_abs(), &[]);
        if deleted < ROWS {
            break;
        }
    }
    let before = state.clock.now() - state.mail_ttl;
    while mails::delete_unsent(&mut conn, before, ROWS).await? >= ROWS.unsigned_abs() {}
    let before = state.clock.now() - state.confirmation_ttl;
    while recipients::delete_unanswered(&mut conn, before, ROWS).await? >= ROWS.unsigned_abs() {}
    Ok(())
}

/// Deletes replaced webhook secrets after their overlap period.
pub(crate) async fn delete_replaced_secrets(state: &JobState) -> anyhow::Result<()> {
    let mut conn = store::acquire(&state.maintenance_db).await?;
    webhooks::delete_expired_secrets(&mut conn, state.clock.now()).await?;
    Ok(())
}
