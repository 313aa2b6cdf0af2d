//! Inserts runs, many of one account with one statement.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::query;
use sqlx::types::Json;
use uuid::Uuid;

use crate::{Conn, Error, monthly_usage};

/// A run to store.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// A UUIDv7: logs and concurrency limits order runs by id.
    pub id: Uuid,
    pub automation_id: Uuid,
    pub definition_hash: Vec<u8>,
    /// `form_submission`, `http`, `schedule` or `test`.
    pub trigger_type: &'static str,
    /// What expressions read as `trigger`.
    pub trigger: Value,
    pub is_test: bool,
    pub depth: i16,
    /// Maximum number of active runs with the same key.
    pub concurrency: Option<(i32, Option<String>)>,
    /// The submission that started the run. Unique per automation, so a replay has none.
    pub submission_id: Option<Uuid>,
    /// The submission whose answers `trigger` holds, also in a replay. The run is deleted with it.
    pub source_submission_id: Option<Uuid>,
    /// The time of the schedule.
    pub fire_at: Option<DateTime<Utc>>,
    pub traceparent: Option<String>,
}

/// How to handle runs beyond the monthly limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverLimit {
    /// They leave a row with the status `skipped`.
    Skip,
    /// They leave nothing.
    Refuse,
}

/// The result of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertedRun {
    /// It is due now.
    Queued,
    /// The month's limit is reached.
    OverLimit,
    /// There is a run of this submission or time already, or its automation is deleted or disabled.
    Absent,
}

/// Inserts runs of one account, each counted in the month of `now` within `limit` (-1: unlimited). Test runs are not
/// counted, and also run if their automation is disabled. Returns a result for each, in order.
pub async fn insert_runs(
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
    limit: i64,
    over: OverLimit,
    runs: &[NewRun],
) -> Result<Vec<InsertedRun>, Error> {
    let counted: Vec<&NewRun> = runs.iter().filter(|run| !run.is_test).collect();
    let wanted = i64::try_from(counted.len()).unwrap_or(i64::MAX);
    let granted = monthly_usage::reserve_automation_runs(conn, account_id, now, wanted, limit).await?;
    let within: std::collections::HashSet<Uuid> =
        counted.iter().take(usize::try_from(granted).unwrap_or(0)).map(|run| run.id).collect();
    let is_queued = |run: &NewRun| run.is_test || within.contains(&run.id);
    let stored: Vec<&NewRun> = runs.iter().filter(|run| over == OverLimit::Skip || is_queued(run)).collect();
    let inserted = query!(
        "insert into automation_runs (id, account_id, automation_id, definition_hash, trigger_type, trigger, status,
                                      is_test, depth, due_at, concurrency_limit, concurrency_key, submission_id,
                                      source_submission_id, fire_at, traceparent, created_at, finished_at)
         select r.id, $2, r.automation_id, r.definition_hash, r.trigger_type, r.trigger,
                case when r.is_queued then 'queued' else 'skipped' end, r.is_test, r.depth,
                case when r.is_queued then $1::timestamptz end, r.concurrency_limit, r.concurrency_key, r.submission_id,
                r.source_submission_id, r.fire_at, r.traceparent, $1, case when not r.is_queued then $1 end
         from unnest($3::uuid[], $4::uuid[], $5::bytea[], $6::text[], $7::json[], $8::boolean[], $9::boolean[],
                     $10::smallint[], $11::int[], $12::text[], $13::uuid[], $14::uuid[], $15::timestamptz[],
                     $16::text[])
              as r (id, automation_id, definition_hash, trigger_type, trigger, is_queued, is_test, depth,
                    concurrency_limit, concurrency_key, submission_id, source_submission_id, fire_at, traceparent)
         join automations a on a.id = r.automation_id and a.account_id = $2 and (a.is_enabled or r.is_test)
         on conflict do nothing returning id",
        now,
        account_id,
        &column(&stored, |run| run.id),
        &column(&stored, |run| run.automation_id),
        &column(&stored, |run| run.definition_hash.clone()),
        &column(&stored, |run| run.trigger_type.to_owned()),
        &column(&stored, |run| Json(&run.trigger)) as _,
        &column(&stored, |run| is_queued(run)),
        &column(&stored, |run| run.is_test),
        &column(&stored, |run| run.depth),
        &column(&stored, |run| run.concurrency.as_ref().map(|limit| limit.0)) as _,
        &column(&stored, |run| run.concurrency.as_ref().and_then(|limit| limit.1.clone())) as _,
        &column(&stored, |run| run.submission_id) as _,
        &column(&stored, |run| run.source_submission_id) as _,
        &column(&stored, |run| run.fire_at) as _,
        &column(&stored, |run| run.traceparent.clone()) as _,
    )
    .fetch_all(&mut *conn)
    .await?;
    let inserted: std::collections::HashSet<Uuid> = inserted.into_iter().map(|row| row.id).collect();
    let unused = within.iter().filter(|id| !inserted.contains(id)).count();
    if unused > 0 {
        let unused = i64::try_from(unused).unwrap_or(0);
        monthly_usage::return_automation_runs(conn, account_id, now, unused).await?;
    }
    Ok(runs
        .iter()
        .map(|run| match (is_queued(run), inserted.contains(&run.id)) {
            (true, true) => InsertedRun::Queued,
            (true, false) => InsertedRun::Absent,
            (false, _) => InsertedRun::OverLimit,
        })
        .collect())
}

fn column<'a, T>(runs: &[&'a NewRun], field: impl Fn(&'a NewRun) -> T) -> Vec<T> {
    runs.iter().map(|run| field(run)).collect()
}
