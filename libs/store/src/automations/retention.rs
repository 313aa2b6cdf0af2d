//! Deletes runs, and definitions that nothing refers to.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::{Conn, Error};

/// An account that has ended runs.
#[derive(Debug, Clone, Copy)]
pub struct EndedRuns {
    pub account_id: Uuid,
    pub plan: Plan,
    /// When the first of them ended.
    pub oldest: DateTime<Utc>,
}

/// How to handle runs that another transaction has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockedRuns {
    /// They are left out.
    Skip,
    /// They are waited for.
    Wait,
}

/// Returns the accounts that have ended runs. Skips from account to account in the index, so its cost does not depend on
/// the number of runs.
pub async fn list_ended_runs(conn: &mut Conn) -> Result<Vec<EndedRuns>, Error> {
    let rows = query!(
        r#"with recursive step (account_id) as (
               (select account_id from automation_runs where finished_at is not null order by account_id limit 1)
               union all
               select (select r.account_id from automation_runs r
                       where r.finished_at is not null and r.account_id > step.account_id order by r.account_id limit 1)
               from step where step.account_id is not null
           )
           select o.id, o.plan, first.finished_at as "oldest!"
           from step join accounts o on o.id = step.account_id
           cross join lateral (
               select r.finished_at from automation_runs r
               where r.account_id = o.id and r.finished_at is not null order by r.finished_at limit 1) first"#,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| Ok(EndedRuns { account_id: row.id, plan: read_plan(&row.plan)?, oldest: row.oldest }))
        .collect()
}

/// Deletes up to `limit` runs of an account that ended before `before`, oldest first, with their steps. Returns their
/// number.
pub async fn delete_ended_runs(
    conn: &mut Conn,
    account_id: Uuid,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, Error> {
    let deleted = query!(
        "delete from automation_runs where id in (
             select id from automation_runs where account_id = $1 and finished_at < $2
             order by finished_at limit $3 for update skip locked)",
        account_id,
        before,
        limit,
    );
    Ok(deleted.execute(conn).await?.rows_affected())
}

/// Deletes up to `limit` runs of an automation that come after the run `after`, in the order of their ids, which ends
/// those that are under way. Returns the last one. `None` means that there are no more.
pub async fn delete_automation_runs(
    conn: &mut Conn,
    automation_id: Uuid,
    after: Uuid,
    locked: LockedRuns,
    limit: i64,
) -> Result<Option<Uuid>, Error> {
    macro_rules! delete {
        ($lock:literal) => {
            query_scalar!(
                "with gone as (
                     delete from automation_runs where id in (
                         select id from automation_runs where automation_id = $1 and id > $2
                         order by id limit $3 "
                    + $lock
                    + ")
                     returning id
                 )
                 select id from gone order by id desc limit 1",
                automation_id,
                after,
                limit,
            )
            .fetch_optional(conn)
            .await?
        };
    }
    Ok(match locked {
        LockedRuns::Skip => delete!("for update skip locked"),
        LockedRuns::Wait => delete!("for update"),
    })
}

/// Deletes the runs that hold the answers of submissions, replays included. The caller has deleted the submissions in
/// this transaction, so no run of them is inserted any more.
pub(crate) async fn delete_runs_of_submissions(
    conn: &mut Conn,
    account_id: Uuid,
    submission_ids: &[Uuid],
) -> Result<(), Error> {
    // A replay that was inserted while its run was waited for is found by the next pass.
    loop {
        let deleted = query!(
            "with found as materialized (
                 select id from automation_runs where account_id = $1 and submission_id = any($2)
                 union all
                 select id from automation_runs
                 where account_id = $1 and source_submission_id = any($2) and submission_id is null
             ), held as materialized (
                 select r.id from automation_runs r join found using (id) order by r.id for update of r
             )
             delete from automation_runs r using held where r.id = held.id",
            account_id,
            submission_ids,
        );
        if deleted.execute(&mut *conn).await?.rows_affected() == 0 {
            return Ok(());
        }
    }
}

/// Deletes the runs that hold the answers of a form's submissions, replays included. The caller has locked the form, so
/// it gets no more submissions.
pub(crate) async fn delete_runs_of_form(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
) -> Result<(), Error> {
    // First the triggers, which waits for runs that are being inserted.
    query!(
        "delete from automation_triggers where submission_id in (
             select id from submissions where account_id = $1 and form_id = $2)",
        account_id,
        form_id,
    )
    .execute(&mut *conn)
    .await?;
    // A replay that was inserted while its run was waited for is found by the next pass.
    loop {
        let deleted = query!(
            "with found as materialized (
                 select r.id from submissions s join automation_runs r on r.submission_id = s.id
                 where s.account_id = $1 and s.form_id = $2
                 union all
                 select r.id from submissions s
                 join automation_runs r on r.source_submission_id = s.id and r.submission_id is null
                 where s.account_id = $1 and s.form_id = $2
             ), held as materialized (
                 select r.id from automation_runs r join found using (id) order by r.id for update of r
             )
             delete from automation_runs r using held where r.id = held.id",
            account_id,
            form_id,
        );
        if deleted.execute(&mut *conn).await?.rows_affected() == 0 {
            return Ok(());
        }
    }
}

/// Deletes up to `limit` versions of definitions that were stored before `before` and that no automation and no unfinished
/// run has, and with them the former versions of automations.
pub async fn delete_unused_definitions(
    conn: &mut Conn,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, Error> {
    // The time is compared again in the row itself: a concurrent update may have renewed it.
    let deleted = query!(
        "delete from automation_definitions d using (
             select account_id, hash from automation_definitions u
             where created_at < $1
               and not exists (select from automations a where a.account_id = u.account_id and a.definition_hash = u.hash)
               and not exists (select from automation_runs r
                               where r.account_id = u.account_id and r.definition_hash = u.hash and r.due_at is not null)
             limit $2) unused
         where d.account_id = unused.account_id and d.hash = unused.hash and d.created_at < $1",
        before,
        limit,
    );
    Ok(deleted.execute(conn).await?.rows_affected())
}
