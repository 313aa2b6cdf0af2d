//! Claims fence every write of a worker, and never exceed a concurrency limit, however many workers claim at once.

use std::collections::{HashMap, HashSet};

use super::{ACCOUNT, now};
use chrono::{DateTime, TimeDelta, Utc};
use sandbox::test::{TestDatabase, automation, run_of, trial};
use serde_json::json;
use service::Rng;
use store::Db;
use store::automations::{
    Claim, ClaimedRun, InsertedRun, NewRun, OverLimit, RunEnd, RunLimit, RunLock, RunResult, RunStatus,
    StepRow, cancel_run, claim_runs, complete_runs, extend_leases, find_answered, hold_runs, insert_runs,
    list_due_accounts, list_journal, lock_run, lock_runs, record_ended_runs, release_runs, resume_run,
    store_response, store_steps,
};
use store::monthly_usage::find_monthly_usage;
use tokio::task::JoinSet;
use uuid::Uuid;

const AUTOMATION: Uuid = Uuid::from_u128(2);
const LIMIT: i32 = 1_000;

fn later(minutes: i64) -> DateTime<Utc> {
    now() + TimeDelta::minutes(minutes)
}

async fn database() -> TestDatabase {
    let database = sandbox::test::database().await;
    trial(&database, ACCOUNT, now()).await;
    automation(&database, ACCOUNT, AUTOMATION, None, now()).await;
    database
}

fn run(number: u128, key: Option<(i32, &str)>) -> NewRun {
    let concurrency = key.map(|(limit, key)| (limit, Some(key.to_owned())));
    NewRun { concurrency, ..run_of(AUTOMATION, Uuid::from_u128(100 + number)) }
}

async fn insert(db: &Db, limit: i64, over: OverLimit, runs: &[NewRun]) -> Vec<InsertedRun> {
    let mut conn = store::acquire(db).await.unwrap();
    insert_runs(&mut conn, ACCOUNT, now(), limit, over, runs).await.unwrap()
}

async fn claim(db: &Db, at: DateTime<Utc>, limit: i32) -> Vec<ClaimedRun> {
    let mut conn = store::acquire(db).await.unwrap();
    let limits = [RunLimit { account_id: ACCOUNT, limit }];
    claim_runs(&mut conn, at, at + TimeDelta::seconds(30), Rng::system().uuid_v7(at), &limits).await.unwrap()
}

fn step(path: &str) -> StepRow {
    StepRow {
        path: path.to_owned(),
        position: 0,
        step_id: path.to_owned(),
        kind: "set",
        status: "success",
        input: json!({}),
        output: json!({"n": 1}),
        sealed_output: Some(b"sealed".to_vec()),
        is_partial: true,
        error: None,
        attempts: 1,
        started_at: now(),
        finished_at: now(),
    }
}

fn end(claim: Claim, result: RunResult) -> RunEnd {
    RunEnd { claim, result, at: now() }
}

async fn number(db: &Db, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(db).await.unwrap()
}

#[tokio::test]
async fn every_write_of_a_worker_whose_claim_has_ended_changes_nothing() {
    let database = database().await;
    let db = &database.db;
    insert(db, -1, OverLimit::Refuse, &[run(1, None)]).await;
    let stale = claim(db, now(), LIMIT).await.pop().unwrap().claim;
    assert!(claim(db, now(), LIMIT).await.is_empty(), "its lease has not expired");
    let taken = claim(db, later(1), LIMIT).await.pop().unwrap();
    assert_eq!((taken.claims, taken.has_begun), (2, true));
    let mut conn = store::acquire(db).await.unwrap();
    let conn = &mut conn;
    assert!(lock_run(conn, ACCOUNT, stale).await.unwrap().is_none());
    assert!(store_steps(conn, &[(stale, step("a"))]).await.unwrap().is_empty());
    let success = RunResult::Success { message: None };
    assert!(complete_runs(conn, &[end(stale, success.clone())]).await.unwrap().is_empty());
    assert_eq!(extend_leases(conn, &[stale], later(9)).await.unwrap(), [stale]);
    release_runs(conn, &[stale], now()).await.unwrap();
    assert_eq!(
        number(db, "select count(*) from automation_runs where status = 'running' and claims = 2").await,
        1
    );
    assert_eq!(number(db, "select count(*) from automation_steps").await, 0);

    // The later claim may write, and progress begins the count of claims anew.
    let claim_of_taken = taken.claim;
    assert!(lock_run(conn, ACCOUNT, claim_of_taken).await.unwrap().is_some());
    assert!(lock_run(conn, Uuid::from_u128(9), claim_of_taken).await.unwrap().is_none(), "another account");
    assert_eq!(store_steps(conn, &[(claim_of_taken, step("a"))]).await.unwrap(), [claim_of_taken.run_id]);
    assert_eq!(number(db, "select claims::bigint from automation_runs").await, 0);
    assert_eq!(list_journal(conn, &[claim_of_taken.run_id]).await.unwrap().len(), 1);
    assert!(extend_leases(conn, &[claim_of_taken], later(9)).await.unwrap().is_empty());
    assert!(claim(db, later(5), LIMIT).await.is_empty(), "its lease was extended");
    assert!(cancel_run(conn, ACCOUNT, AUTOMATION, claim_of_taken.run_id, now()).await.unwrap());
    assert!(complete_runs(conn, &[end(claim_of_taken, success)]).await.unwrap().is_empty());
    assert!(store_steps(conn, &[(claim_of_taken, step("b"))]).await.unwrap().is_empty());
    assert_eq!(number(db, "select count(*) from automation_steps where sealed_output is not null").await, 0);
    assert!(list_due_accounts(conn, later(60)).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_locked_run_delays_no_other_and_is_not_lost() {
    let database = database().await;
    let db = &database.db;
    insert(db, -1, OverLimit::Refuse, &[run(1, None), run(2, None)]).await;
    let claims: Vec<Claim> = claim(db, now(), LIMIT).await.iter().map(|run| run.claim).collect();
    let (locked, free) = (claims[0], claims[1]);
    let mut other = store::begin(db).await.unwrap();
    assert!(lock_run(&mut other, ACCOUNT, locked).await.unwrap().is_some());
    let mut conn = store::acquire(db).await.unwrap();
    assert!(extend_leases(&mut conn, &claims, later(9)).await.unwrap().is_empty());
    let held = hold_runs(&mut conn, &claims).await.unwrap();
    assert_eq!((held.held, held.busy), (HashSet::from([free.run_id]), HashSet::from([locked.run_id])));
    let locks = lock_runs(&mut conn, &claims.iter().map(|claim| (ACCOUNT, *claim)).collect::<Vec<_>>()).await;
    let locks = locks.unwrap();
    assert!(
        matches!(locks[&locked.run_id], RunLock::Busy) && matches!(locks[&free.run_id], RunLock::Held(_))
    );
    release_runs(&mut conn, &claims, now()).await.unwrap();
    store::rollback(other).await.unwrap();
    assert_eq!(extend_leases(&mut conn, &claims, later(9)).await.unwrap(), [free], "it was released");
    let held = hold_runs(&mut conn, &claims).await.unwrap();
    assert_eq!((held.held, held.busy), (HashSet::from([locked.run_id]), HashSet::new()));
}

#[tokio::test]
async fn a_released_run_is_due_at_once_and_its_claim_not_counted() {
    let database = database().await;
    let db = &database.db;
    insert(db, -1, OverLimit::Refuse, &[run(1, None), run(2, None)]).await;
    let mut conn = store::acquire(db).await.unwrap();
    let claimed: Vec<Claim> = claim(db, now(), LIMIT).await.iter().map(|run| run.claim).collect();
    release_runs(&mut conn, &claimed[..1], now()).await.unwrap();
    let again = claim(db, now(), LIMIT).await;
    assert_eq!(
        again.iter().map(|run| (run.claim.run_id, run.claims)).collect::<Vec<_>>(),
        [(claimed[0].run_id, 1)]
    );
}

#[tokio::test]
async fn a_link_resumes_only_the_wait_that_it_belongs_to() {
    let database = database().await;
    let db = &database.db;
    insert(db, -1, OverLimit::Refuse, &[run(1, None)]).await;
    let claimed = claim(db, now(), LIMIT).await.pop().unwrap().claim;
    let mut conn = store::acquire(db).await.unwrap();
    let conn = &mut conn;
    let id = claimed.run_id;
    assert_eq!(resume_run(conn, id, 0, &json!(1), now()).await.unwrap(), None, "it does not wait yet");
    let waiting = RunResult::Waiting { until: later(60), resume: Some(0) };
    assert_eq!(complete_runs(conn, &[end(claimed, waiting)]).await.unwrap(), [id]);
    assert_eq!(resume_run(conn, id, 1, &json!(1), now()).await.unwrap(), None);
    assert_eq!(resume_run(conn, id, 0, &json!(1), later(61)).await.unwrap(), None, "its time is over");
    assert!(claim(db, now(), LIMIT).await.is_empty());
    assert_eq!(resume_run(conn, id, 0, &json!({"ok": true}), now()).await.unwrap(), Some(ACCOUNT));
    assert_eq!(resume_run(conn, id, 0, &json!(2), now()).await.unwrap(), None, "once");
    let again = claim(db, now(), LIMIT).await.pop().unwrap();
    assert_eq!((again.claims, again.resumed), (1, Some(json!({"number": 0, "payload": {"ok": true}}))));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_workers_never_claim_a_run_twice() {
    let database = database().await;
    let runs: Vec<_> = (0..500).map(|number| run(number, None)).collect();
    insert(&database.db, -1, OverLimit::Refuse, &runs).await;
    let workers: JoinSet<Vec<Uuid>> = (0..8)
        .map(|_| {
            let db = database.db.clone();
            async move {
                let mut claimed = Vec::new();
                loop {
                    let batch = claim(&db, now(), 7).await;
                    if batch.is_empty() {
                        return claimed;
                    }
                    claimed.extend(batch.iter().map(|run| run.claim.run_id));
                }
            }
        })
        .collect();
    let claimed: Vec<Uuid> = workers.join_all().await.concat();
    let distinct: HashSet<_> = claimed.iter().collect();
    assert_eq!(distinct.len(), claimed.len(), "none twice");
    // A worker that met only locked rows has stopped early; the rest is left, not lost.
    let left = claim(&database.db, now(), LIMIT).await.len();
    assert_eq!(claimed.len() + left, 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_workers_never_exceed_a_concurrency_limit() {
    let database = database().await;
    let keys = [("a", 1), ("b", 3), ("c", 2)];
    let runs: Vec<_> = (0..150_usize)
        .map(|number| run(number as u128, Some((keys[number % 3].1, keys[number % 3].0))))
        .collect();
    insert(&database.db, -1, OverLimit::Refuse, &runs).await;
    let active = "select coalesce(concurrency_key, ''), count(*) from automation_runs
                  where status in ('running', 'waiting') group by 1";
    let workers: JoinSet<()> = (0..6)
        .map(|worker| {
            let db = database.db.clone();
            async move {
                let done = "select count(*) from automation_runs where status = 'success'";
                while number(&db, done).await < 150 {
                    let claimed = claim(&db, now(), 10).await;
                    let mut conn = store::acquire(&db).await.unwrap();
                    let counts: HashMap<String, i64> = sqlx::query_as::<_, (String, i64)>(active)
                        .fetch_all(&mut *conn)
                        .await
                        .unwrap()
                        .into_iter()
                        .collect();
                    for (key, limit) in keys {
                        assert!(
                            counts.get(key).copied().unwrap_or(0) <= i64::from(limit),
                            "{worker}: {counts:?}"
                        );
                    }
                    let success = RunResult::Success { message: None };
                    let ends: Vec<_> = claimed.iter().map(|run| end(run.claim, success.clone())).collect();
                    assert_eq!(complete_runs(&mut conn, &ends).await.unwrap().len(), claimed.len());
                }
            }
        })
        .collect();
    sandbox::test::with_timeout(workers.join_all()).await;
}

#[tokio::test]
async fn runs_of_a_key_start_in_order_and_a_waiting_one_holds_its_place() {
    let database = database().await;
    let db = &database.db;
    let runs: Vec<_> = (0..3).map(|number| run(number, Some((1, "a")))).collect();
    insert(db, -1, OverLimit::Refuse, &runs).await;
    for expected in &runs {
        let claimed = claim(db, now(), LIMIT).await;
        assert_eq!(claimed.iter().map(|run| run.claim.run_id).collect::<Vec<_>>(), [expected.id]);
        let mut conn = store::acquire(db).await.unwrap();
        let waiting = RunResult::Waiting { until: later(10), resume: None };
        complete_runs(&mut conn, &[end(claimed[0].claim, waiting)]).await.unwrap();
        assert!(claim(db, now(), LIMIT).await.is_empty());
        assert!(cancel_run(&mut conn, ACCOUNT, AUTOMATION, expected.id, now()).await.unwrap());
    }
}

#[tokio::test]
async fn runs_are_counted_within_the_month_and_each_submission_and_time_has_one() {
    let database = database().await;
    let db = &database.db;
    let runs: Vec<_> = (0..4).map(|number| run(number, None)).collect();
    let (queued, over, absent) = (InsertedRun::Queued, InsertedRun::OverLimit, InsertedRun::Absent);
    assert_eq!(insert(db, 3, OverLimit::Skip, &runs).await, [queued, queued, queued, over]);
    assert_eq!(insert(db, 3, OverLimit::Refuse, &[run(9, None)]).await, [over]);
    assert_eq!(number(db, "select count(*) from automation_runs where status = 'skipped'").await, 1);
    assert_eq!(number(db, "select count(*) from automation_runs").await, 4, "a refused one leaves nothing");
    let test = NewRun { is_test: true, trigger_type: "test", ..run(10, None) };
    assert_eq!(insert(db, 3, OverLimit::Refuse, &[test]).await, [queued]);
    let timed = |number| NewRun { fire_at: Some(now()), trigger_type: "schedule", ..run(number, None) };
    assert_eq!(insert(db, -1, OverLimit::Skip, &[timed(11)]).await, [queued]);
    assert_eq!(insert(db, -1, OverLimit::Skip, &[timed(12)]).await, [absent]);
    let mut conn = store::acquire(db).await.unwrap();
    assert_eq!(find_monthly_usage(&mut conn, ACCOUNT, now()).await.unwrap().automation_runs, 4);
}

#[tokio::test]
async fn a_batch_of_ends_changes_the_statistics_once_and_reports_the_streak() {
    let database = database().await;
    let db = &database.db;
    let runs: Vec<_> = (0..12).map(|number| run(number, None)).collect();
    insert(db, -1, OverLimit::Refuse, &runs).await;
    let mut claimed = claim(db, now(), LIMIT).await;
    claimed.sort_by_key(|run| run.claim.run_id);
    let mut conn = store::acquire(db).await.unwrap();
    let failed = RunResult::Error { path: "a".to_owned(), message: "no".to_owned() };
    let ends: Vec<_> = claimed
        .iter()
        .enumerate()
        .map(|(at, run)| {
            let result = if at == 1 { RunResult::Success { message: None } } else { failed.clone() };
            RunEnd { claim: run.claim, result, at: now() + TimeDelta::seconds(i64::try_from(at).unwrap()) }
        })
        .collect();
    let mut streaks = Vec::new();
    for batch in [&ends[..3], &ends[3..]] {
        let completed = complete_runs(&mut conn, batch).await.unwrap();
        let streak = record_ended_runs(&mut conn, &completed).await.unwrap();
        streaks.extend(streak.iter().map(|streak| (streak.before, streak.after)));
    }
    assert_eq!(streaks, [(0, 1), (1, 10)]);
    assert_eq!(number(db, "select runs * 100 + failures from automation_statistics").await, 1_211);
}

#[tokio::test]
async fn ten_thousand_runs_behind_a_concurrency_limit_delay_no_claim_and_no_poll() {
    let database = database().await;
    let runs: Vec<_> = (0..10_000).map(|number| run(number, Some((1, "a")))).collect();
    insert(&database.db, -1, OverLimit::Refuse, &runs).await;
    insert(&database.db, -1, OverLimit::Refuse, &[run(20_000, None)]).await;
    store::execute_raw(&database.db, "analyze automation_runs").await.unwrap();
    let claimed: HashSet<Uuid> =
        claim(&database.db, now(), 32).await.iter().map(|run| run.claim.run_id).collect();
    assert_eq!(
        claimed,
        HashSet::from([runs[0].id, Uuid::from_u128(20_100)]),
        "the oldest of the key, and the free one"
    );
    let began = std::time::Instant::now();
    for _ in 0..10 {
        assert!(claim(&database.db, now(), 32).await.is_empty());
        let mut conn = store::acquire(&database.db).await.unwrap();
        assert_eq!(list_due_accounts(&mut conn, now()).await.unwrap(), [ACCOUNT]);
    }
    // Counting the active runs for each queued one took minutes.
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

/// JSON that Postgres stores and that is not read back.
const DEEP: &str = "(repeat('[', 200) || repeat(']', 200))::json";

#[tokio::test]
async fn a_step_or_an_answer_that_is_nested_too_deep_fails_only_its_own_run() {
    let database = database().await;
    let db = &database.db;
    insert(db, -1, OverLimit::Refuse, &[run(1, None), run(2, None)]).await;
    let claims: Vec<Claim> = claim(db, now(), LIMIT).await.iter().map(|run| run.claim).collect();
    let mut conn = store::acquire(db).await.unwrap();
    let conn = &mut conn;
    store_steps(conn, &[(claims[0], step("a")), (claims[1], step("a"))]).await.unwrap();
    let (bad, good) = (claims[0].run_id, claims[1].run_id);
    for run_id in [bad, good] {
        store_response(conn, ACCOUNT, run_id, &json!({"status": 200})).await.unwrap();
    }
    for statement in [
        format!("update automation_steps set output = {DEEP} where run_id = $1"),
        format!("update automation_runs set response = {DEEP} where id = $1"),
    ] {
        let changed = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(bad).execute(db).await.unwrap();
        assert_eq!(changed.rows_affected(), 1);
    }
    let journal = list_journal(conn, &[bad, good]).await.unwrap();
    let outputs: HashMap<Uuid, _> = journal.into_iter().map(|row| (row.run_id, row.output)).collect();
    assert!(outputs[&bad].is_err(), "{outputs:?}");
    assert_eq!(outputs[&good], Ok(json!({"n": 1})));
    let mut answered = find_answered(conn, &[bad, good]).await.unwrap();
    answered.sort_by_key(|answer| answer.0 == good);
    let expected = [(bad, RunStatus::Error, None), (good, RunStatus::Running, Some(json!({"status": 200})))];
    assert_eq!(answered, expected);
}
