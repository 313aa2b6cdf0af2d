//! The order in which statements lock an automation, its statistics and its runs.

use super::{ACCOUNT, now};
use chrono::TimeDelta;
use sandbox::test::{TestDatabase, automation, run_of, trial, until};
use service::Rng;
use store::Db;
use store::automations::{
    AutomationChange, InsertedRun, OverLimit, RunEnd, RunLimit, RunResult, SaveOutcome, claim_runs,
    complete_runs, delete_automation, disable_automation, find_automation, insert_runs, lock_automation,
    record_ended_runs, update_automation,
};
use uuid::Uuid;

const AUTOMATION: Uuid = Uuid::from_u128(2);

/// An automation that has failed once.
async fn database() -> TestDatabase {
    let database = sandbox::test::database().await;
    trial(&database, ACCOUNT, now()).await;
    automation(&database, ACCOUNT, AUTOMATION, None, now()).await;
    let failed = failed_run(&database.db, 1).await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    record_ended_runs(&mut conn, &[failed]).await.unwrap();
    drop(conn);
    database
}

/// Returns a run that has failed and is not counted yet.
async fn failed_run(db: &Db, number: u128) -> Uuid {
    let mut conn = store::acquire(db).await.unwrap();
    let run = run_of(AUTOMATION, Uuid::from_u128(100 + number));
    let inserted = insert_runs(&mut conn, ACCOUNT, now(), -1, OverLimit::Refuse, &[run]).await.unwrap();
    assert_eq!(inserted, [InsertedRun::Queued]);
    let limits = [RunLimit { account_id: ACCOUNT, limit: 10 }];
    let (until, lease_id) = (now() + TimeDelta::seconds(30), Rng::system().uuid_v7(now()));
    let claim = claim_runs(&mut conn, now(), until, lease_id, &limits).await.unwrap()[0].claim;
    let result = RunResult::Error { path: String::new(), message: "refused".to_owned() };
    let ended = complete_runs(&mut conn, &[RunEnd { claim, result, at: now() }]).await.unwrap();
    assert_eq!(ended, [claim.run_id]);
    claim.run_id
}

/// Counts a failed run and disables the automation, and lets `other` begin in between.
async fn count_and_disable(db: &Db, run_id: Uuid, other: impl Future<Output = Result<bool, store::Error>>) {
    let mut worker = store::begin(db).await.unwrap();
    assert_eq!(record_ended_runs(&mut worker, &[run_id]).await.unwrap().len(), 1);
    let disabling = async {
        let waits = "select count(*) from pg_stat_activity where datname = current_database()
                     and wait_event_type = 'Lock'";
        until(async || sqlx::query_scalar::<_, i64>(waits).fetch_one(db).await.unwrap() > 0).await;
        let disabled = disable_automation(&mut worker, ACCOUNT, AUTOMATION, now()).await;
        if disabled.is_ok() {
            store::commit(worker).await.unwrap();
        }
        disabled
    };
    let (disabled, other) = tokio::join!(disabling, other);
    assert!(matches!((&disabled, &other), (Ok(true), Ok(true))), "{disabled:?} {other:?}");
}

#[tokio::test]
async fn enabling_an_automation_does_not_deadlock_with_the_worker_that_disables_it() {
    let database = database().await;
    let db = &database.db;
    let run_id = failed_run(db, 2).await;
    count_and_disable(db, run_id, async {
        let mut tx = store::begin(db).await?;
        let is_locked = lock_automation(&mut tx, ACCOUNT, AUTOMATION, Some(true)).await?;
        let change = AutomationChange { is_enabled: Some(true), ..AutomationChange::default() };
        let outcome = update_automation(&mut tx, ACCOUNT, AUTOMATION, &change, now()).await?;
        store::commit(tx).await?;
        Ok(is_locked && outcome == SaveOutcome::Stored)
    })
    .await;
    let mut conn = store::acquire(db).await.unwrap();
    let automation = find_automation(&mut conn, ACCOUNT, AUTOMATION).await.unwrap().unwrap();
    assert!(automation.is_enabled, "the later one holds");
    assert_eq!((automation.statistics.failures, automation.statistics.consecutive_failures), (2, 0));
}

#[tokio::test]
async fn deleting_an_automation_does_not_deadlock_with_the_worker_that_disables_it() {
    let database = database().await;
    let db = &database.db;
    let run_id = failed_run(db, 2).await;
    count_and_disable(db, run_id, async {
        let mut tx = store::begin(db).await?;
        let is_deleted = delete_automation(&mut tx, ACCOUNT, AUTOMATION).await?;
        store::commit(tx).await?;
        Ok(is_deleted)
    })
    .await;
}
