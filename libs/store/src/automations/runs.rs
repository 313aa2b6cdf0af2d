//! Reads, cancels and resumes runs.

use chrono::{DateTime, Utc};
use domain::Cursor;
use futures::TryStreamExt;
use serde_json::{Value, json};
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::list_filter::collect_page;
use crate::{Conn, Error, ListPage};

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// It waits for a worker.
    Queued,
    /// A worker executes it.
    Running,
    /// It waits for a time, its link or its next attempt.
    Waiting,
    Success,
    Error,
    Cancelled,
    /// The month's limit was reached.
    Skipped,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Success,
        Self::Error,
        Self::Cancelled,
        Self::Skipped,
    ];

    /// Returns the stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Success => "success",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }

    /// Parses the stored word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Returns whether nothing follows.
    pub fn is_ended(self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

/// A run as its owner sees it.
#[derive(Debug, Clone)]
pub struct Run {
    pub id: Uuid,
    pub automation_id: Uuid,
    pub definition_hash: Vec<u8>,
    /// Other versions of the definition that a replay keeps data of: the trigger or outputs of their runs.
    pub source_hashes: Vec<Vec<u8>>,
    pub trigger_type: String,
    pub trigger: Value,
    pub status: RunStatus,
    pub is_test: bool,
    pub depth: i16,
    /// The submission that the answers in `trigger` come from, also in a replay.
    pub source_submission_id: Option<Uuid>,
    /// When a waiting run is due again.
    pub due_at: Option<DateTime<Utc>>,
    /// Number of the wait that its link ends.
    pub resume_number: Option<i32>,
    /// The answer of a `respond` step: `{status, headers, body}`.
    pub response: Option<Value>,
    pub error: Option<String>,
    pub error_path: Option<String>,
    /// The reason of a `stop` step.
    pub message: Option<String>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// A step of a run as its owner sees it, masked and cut.
#[derive(Debug, Clone)]
pub struct LoggedStep {
    pub path: String,
    pub step_id: String,
    pub kind: String,
    pub status: String,
    pub input: Value,
    pub output: Value,
    pub error: Option<String>,
    pub attempts: i32,
    pub started_at: DateTime<Utc>,
    pub finished_at: DateTime<Utc>,
}

/// Filter and page of a list of runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub status: Option<RunStatus>,
    /// Only waiting runs: those that wait for the next attempt of a step, or, if false, the others.
    pub is_retrying: Option<bool>,
    /// Only runs older than this one.
    pub after: Option<Cursor>,
    pub limit: i64,
}

macro_rules! run {
    ($row:expr) => {
        Run {
            id: $row.id,
            automation_id: $row.automation_id,
            definition_hash: $row.definition_hash,
            source_hashes: $row.source_hashes,
            trigger_type: $row.trigger_type,
            trigger: $row.trigger.0,
            status: RunStatus::parse(&$row.status).ok_or(Error::Unreadable {
                table: "automation_runs",
                column: "status",
                value: $row.status,
            })?,
            is_test: $row.is_test,
            depth: $row.depth,
            source_submission_id: $row.source_submission_id,
            due_at: $row.due_at,
            resume_number: $row.resume_number,
            response: $row.response.map(|response| response.0),
            error: $row.error,
            error_path: $row.error_path,
            message: $row.message,
            created_at: $row.created_at,
            started_at: $row.started_at,
            finished_at: $row.finished_at,
        }
    };
}

/// Reads a page of the runs that fulfil a condition. Its parameters begin with `$5`.
macro_rules! page {
    ($conn:expr, $account_id:expr, $automation_id:expr, $filter:expr, $condition:tt $(, $more:expr)*) => {{
        // Ids are UUIDv7, so their order is that of creation. The account is compared with the automation's: a second
        // condition on the runs would make the planner expect too few of them, and read and sort all.
        let rows = query!(
            r#"select id, automation_id, definition_hash, coalesce(source_hashes, '{}') as "source_hashes!", trigger_type,
                      trigger as "trigger: Json<Value>", status, is_test, depth, source_submission_id, due_at, resume_number, response as "response: Json<Value>", error,
                      error_path, message, created_at, started_at, finished_at
               from automation_runs
               where automation_id = (select id from automations where account_id = $1 and id = $2)
                 and ($3::uuid is null or id < $3) and "#
                + $condition
                + r#" order by id desc limit $4::bigint + 1"#,
            $account_id,
            $automation_id,
            $filter.after.map(|after| after.id),
            $filter.limit,
            $($more,)*
        );
        let rows = rows.fetch($conn).map_err(Error::from).and_then(async |row| Ok(run!(row)));
        collect_page(rows, $filter.limit, |run: &Run| domain::json_bytes(&run.trigger)).await
    }};
}

/// Returns a page of the runs of an automation, newest first.
pub async fn list_runs(
    conn: &mut Conn,
    account_id: Uuid,
    automation_id: Uuid,
    filter: &RunFilter,
) -> Result<ListPage<Run>, Error> {
    // A statement for each index: among a million runs of one status, those of another one are found by theirs.
    if let Some(is_retrying) = filter.is_retrying {
        return page!(
            conn,
            account_id,
            automation_id,
            filter,
            "status = 'waiting' and status not in ('queued', 'running')
                 and $5 = exists (select from automation_steps s
                                  where s.run_id = automation_runs.id and s.status = 'waiting' and s.type <> 'wait')",
            is_retrying
        );
    }
    match filter.status {
        None => page!(conn, account_id, automation_id, filter, "true"),
        // No index has their status. They are the runs of the account that are due, few beside those that have ended.
        Some(status @ (RunStatus::Queued | RunStatus::Running)) => page!(
            conn,
            account_id,
            automation_id,
            filter,
            "id = any(array(select r.id from automation_runs r where r.account_id = $1 and r.due_at is not null
                            and r.automation_id = $2 and r.status = $5))",
            status.as_str()
        ),
        Some(status) => page!(
            conn,
            account_id,
            automation_id,
            filter,
            "status = $5 and status not in ('queued', 'running')",
            status.as_str()
        ),
    }
}

/// Returns a run of an automation.
pub async fn find_run(
    conn: &mut Conn,
    account_id: Uuid,
    automation_id: Uuid,
    id: Uuid,
) -> Result<Option<Run>, Error> {
    let row = query!(
        r#"select id, automation_id, definition_hash, coalesce(source_hashes, '{}') as "source_hashes!", trigger_type,
                  trigger as "trigger: Json<Value>", status, is_test, depth, source_submission_id, due_at, resume_number,
                  response as "response: Json<Value>", error, error_path, message, created_at, started_at, finished_at
           from automation_runs where account_id = $1 and automation_id = $2 and id = $3"#,
        account_id,
        automation_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| Ok(run!(row))).transpose()
}

/// The first steps of a run.
#[derive(Debug)]
pub struct LoggedSteps {
    /// In the order in which they began.
    pub steps: Vec<LoggedStep>,
    /// Whether the run has more steps.
    pub is_truncated: bool,
}

/// Returns the first steps of a run: at most `limit`, and as many as have `bytes_max` bytes of JSON together, but at
/// least one. The rest is not read: ten thousand steps may have a gigabyte.
pub async fn list_steps(
    conn: &mut Conn,
    account_id: Uuid,
    run_id: Uuid,
    limit: i64,
    bytes_max: i64,
) -> Result<LoggedSteps, Error> {
    let rows = query!(
        r#"select path as "path!", step_id as "step_id!", type as "kind!", status as "status!",
                  input as "input!: Json<Value>", output as "output!: Json<Value>", error, attempts as "attempts!",
                  started_at as "started_at!", finished_at as "finished_at!", found as "found!"
           from (
               select first.*, row_number() over ordered as number, count(*) over () as found,
                      sum(octet_length(input::text) + octet_length(output::text) + coalesce(octet_length(error), 0))
                          over ordered as bytes
               from (
                   select s.position, s.path, s.step_id, s.type, s.status, s.input, s.output, s.error, s.attempts,
                          s.started_at, s.finished_at
                   from automation_runs r join automation_steps s on s.run_id = r.id
                   where r.account_id = $1 and r.id = $2 order by s.position, s.path limit $3::bigint + 1) first
               window ordered as (order by position, path rows unbounded preceding)) counted
           where number <= $3 and (number = 1 or bytes <= $4)
           order by position, path"#,
        account_id,
        run_id,
        limit,
        bytes_max,
    )
    .fetch_all(conn)
    .await?;
    let found = rows.first().map_or(0, |row| row.found);
    let is_truncated = usize::try_from(found).unwrap_or_default() > rows.len();
    let steps = rows.into_iter().map(|row| LoggedStep {
        path: row.path,
        step_id: row.step_id,
        kind: row.kind,
        status: row.status,
        input: row.input.0,
        output: row.output.0,
        error: row.error,
        attempts: row.attempts,
        started_at: row.started_at,
        finished_at: row.finished_at,
    });
    Ok(LoggedSteps { steps: steps.collect(), is_truncated })
}

/// Returns those of the runs that have an answer or have ended, with the answer. One that can't be read counts as an error.
/// Takes no account: the caller has inserted the runs.
pub async fn find_answered(
    conn: &mut Conn,
    run_ids: &[Uuid],
) -> Result<Vec<(Uuid, RunStatus, Option<Value>)>, Error> {
    let rows = query!(
        "select id, status, response::text as response from automation_runs
         where id = any($1) and (response is not null or due_at is null)",
        run_ids,
    )
    .fetch_all(conn)
    .await?;
    // Parsed one by one, so that an answer that can't be read does not fail the others.
    let answered = rows.into_iter().map(|row| {
        let status = RunStatus::parse(&row.status).unwrap_or(RunStatus::Error);
        match row.response.as_deref().map(serde_json::from_str).transpose() {
            Ok(response) => (row.id, status, response),
            Err(_unreadable) => (row.id, RunStatus::Error, None),
        }
    });
    Ok(answered.collect())
}

/// Cancels a run that has not ended; its worker can write nothing more. Returns whether it was cancelled.
pub async fn cancel_run(
    conn: &mut Conn,
    account_id: Uuid,
    automation_id: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let cancelled = query_scalar!(
        "with cancelled as (
             update automation_runs
             set status = 'cancelled', due_at = null, lease_id = null, resume_number = null, resumed = null,
                 finished_at = $4
             where account_id = $1 and automation_id = $2 and id = $3 and due_at is not null
             returning id
         ), forgotten as (
             update automation_steps s set sealed_output = null from cancelled c
             where s.run_id = c.id and s.sealed_output is not null
         )
         select id from cancelled",
        account_id,
        automation_id,
        id,
        now,
    )
    .fetch_optional(conn)
    .await?;
    Ok(cancelled.is_some())
}

/// Resumes a run that waits for its link number `number`, once. Returns the account if it did. Stores
/// `{number, payload}`: after a kill, the use of this link must not end the next wait. Takes no account: the link proves
/// that its bearer may.
pub async fn resume_run(
    conn: &mut Conn,
    run_id: Uuid,
    number: i32,
    payload: &Value,
    now: DateTime<Utc>,
) -> Result<Option<Uuid>, Error> {
    let account_id = query_scalar!(
        "update automation_runs set resumed = $3, resume_number = null, due_at = $4
         where id = $1 and status = 'waiting' and resume_number = $2 and due_at > $4 returning account_id",
        run_id,
        number,
        Json(json!({"number": number, "payload": payload})) as _,
        now,
    )
    .fetch_optional(conn)
    .await?;
    Ok(account_id)
}
