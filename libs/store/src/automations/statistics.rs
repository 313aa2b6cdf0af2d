//! Counts of an automation's runs.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// Failures of an automation without a success between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureStreak {
    pub account_id: Uuid,
    pub automation_id: Uuid,
    /// The count before these runs.
    pub before: i32,
    /// The count with these runs.
    pub after: i32,
}

/// Counts runs that have ended, in order; test runs are left out. Each automation's counter changes once. Returns the
/// streaks of those that failed last.
pub async fn record_ended_runs(conn: &mut Conn, run_ids: &[Uuid]) -> Result<Vec<FailureStreak>, Error> {
    let streaks = query_as!(
        FailureStreak,
        r#"with ended as materialized (
               select r.account_id, r.automation_id, r.status = 'error' as has_failed, r.finished_at, r.error
               from automation_runs r
               where r.id = any($1) and not r.is_test and r.status in ('success', 'error')
           ), counted as materialized (
               select account_id, automation_id, count(*) as runs, count(*) filter (where has_failed) as failures,
                      max(finished_at) as last_run_at,
                      max(finished_at) filter (where not has_failed) as succeeded_at,
                      (array_agg(error order by finished_at desc) filter (where has_failed))[1] as last_error
               from ended group by account_id, automation_id
           ), last as materialized (
               select c.*, (select count(*)::int from ended e
                            where e.automation_id = c.automation_id and e.has_failed
                              and (c.succeeded_at is null or e.finished_at > c.succeeded_at)) as streak
               from counted c order by c.automation_id
           ), stored as (
               insert into automation_statistics as s
                   (automation_id, runs, failures, consecutive_failures, last_run_at, last_error)
               select l.automation_id, l.runs, l.failures, l.streak, l.last_run_at, l.last_error
               from last l join automations a on a.id = l.automation_id
               on conflict (automation_id) do update set
                   runs = s.runs + excluded.runs, failures = s.failures + excluded.failures,
                   consecutive_failures = case when excluded.runs > excluded.failures then 0
                                               else s.consecutive_failures end + excluded.consecutive_failures,
                   last_run_at = greatest(s.last_run_at, excluded.last_run_at),
                   last_error = coalesce(excluded.last_error, s.last_error)
               returning s.automation_id, s.consecutive_failures
           )
           select l.account_id as "account_id!", l.automation_id as "automation_id!",
                  s.consecutive_failures - l.streak as "before!", s.consecutive_failures as "after!"
           from stored s join last l using (automation_id) where l.streak > 0"#,
        run_ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(streaks)
}

/// Returns the median and the 95th percentile of the durations of the last runs that succeeded or failed, in
/// milliseconds.
pub async fn find_durations(
    conn: &mut Conn,
    account_id: Uuid,
    automation_id: Uuid,
) -> Result<Option<(f64, f64)>, Error> {
    let row = query!(
        r#"select percentile_cont(0.5) within group (order by ms) as p50,
                  percentile_cont(0.95) within group (order by ms) as p95
           from (select (extract(epoch from finished_at - started_at) * 1000)::double precision as ms
                 from (
                     (select id, started_at, finished_at from automation_runs
                      where automation_id = (select id from automations where account_id = $1 and id = $2)
                        and status = 'success' and started_at is not null
                        and not is_test
                      order by id desc limit 1000)
                     union all
                     (select id, started_at, finished_at from automation_runs
                      where automation_id = (select id from automations where account_id = $1 and id = $2)
                        and status = 'error' and started_at is not null
                        and not is_test
                      order by id desc limit 1000)) ended
                 order by id desc limit 1000) last"#,
        account_id,
        automation_id,
    )
    .fetch_one(conn)
    .await?;
    Ok(row.p50.zip(row.p95))
}

/// What the mail to the owner of a failing automation says.
#[derive(Debug, Clone)]
pub struct Failing {
    /// The owner's verified address.
    pub to: String,
    pub name: String,
    pub is_enabled: bool,
    pub consecutive_failures: i32,
    /// Without values of variables.
    pub last_error: Option<String>,
    pub last_run_at: DateTime<Utc>,
}

/// Returns what the mail to the owner of a failing automation says. `None` if it is deleted, or if
/// its account has no verified address.
pub async fn find_failing(
    conn: &mut Conn,
    account_id: Uuid,
    automation_id: Uuid,
) -> Result<Option<Failing>, Error> {
    let failing = query_as!(
        Failing,
        r#"select i.email as "to!", a.name, a.is_enabled, s.consecutive_failures, s.last_error,
                  s.last_run_at as "last_run_at!"
           from automations a
           join automation_statistics s on s.automation_id = a.id
           join identity_accounts own on own.account_id = a.account_id
           join identities i on i.id = own.identity_id
           where a.account_id = $1 and a.id = $2 and s.last_run_at is not null
             and i.email_verified and i.email is not null"#,
        account_id,
        automation_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(failing)
}
