//! Copies steps of an ended run into a new one, so that a replay goes on from a later step.

use chrono::{DateTime, Utc};
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// Returns the path of the first of these steps with an incomplete stored output: it was masked or truncated for the
/// log, and the complete one was deleted when the run ended. `None` if all outputs can be copied.
pub async fn find_incomplete_step(
    conn: &mut Conn,
    account_id: Uuid,
    run_id: Uuid,
    step_ids: &[String],
) -> Result<Option<String>, Error> {
    // Steps that only compute are computed again, so their outputs don't matter.
    let path = query_scalar!(
        r#"select s.path from automation_runs r join automation_steps s on s.run_id = r.id
           where r.account_id = $1 and r.id = $2 and split_part(s.path, '[', 1) = any($3) and s.status = 'success'
             and s.type not in ('condition', 'set', 'transform', 'for_each', 'stop')
             and s.is_partial
           order by s.position limit 1"#,
        account_id,
        run_id,
        step_ids,
    )
    .fetch_optional(conn)
    .await?;
    Ok(path)
}

/// Locks a run that is about to be replayed against deletion, so that an erasure finds the copy of its answers. Returns
/// `false` if it is deleted.
pub async fn lock_replayed_run(conn: &mut Conn, account_id: Uuid, run_id: Uuid) -> Result<bool, Error> {
    let locked = query!(
        "select id from automation_runs where account_id = $1 and id = $2 for key share",
        account_id,
        run_id,
    );
    Ok(locked.fetch_optional(conn).await?.is_some())
}

/// Stores the versions of the definition, other than its own, that a run just inserted keeps data of.
pub async fn set_source_hashes(
    conn: &mut Conn,
    account_id: Uuid,
    run_id: Uuid,
    hashes: &[Vec<u8>],
) -> Result<(), Error> {
    query!(
        "update automation_runs set source_hashes = $3 where account_id = $1 and id = $2",
        account_id,
        run_id,
        hashes,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Copies the steps with these ids, and those inside them, from one run of the account into another one that was just
/// inserted. Failed ones are left out, so that they are executed again, and so are loops: their elements are copied.
pub async fn copy_steps(
    conn: &mut Conn,
    account_id: Uuid,
    from_run: Uuid,
    to_run: Uuid,
    step_ids: &[String],
    now: DateTime<Utc>,
) -> Result<u64, Error> {
    let copied = query!(
        "insert into automation_steps (run_id, path, position, step_id, type, status, input, output, is_partial, error,
                                       attempts, started_at, finished_at)
         select n.id, s.path, s.position, s.step_id, s.type, s.status, s.input, s.output, s.is_partial, s.error,
                s.attempts, s.started_at, s.finished_at
         from automation_runs r
         join automation_steps s on s.run_id = r.id
         join automation_runs n on n.account_id = r.account_id and n.id = $3 and n.status = 'queued'
         where r.account_id = $1 and r.id = $2 and split_part(s.path, '[', 1) = any($4)
           and s.status in ('success', 'skipped') and s.type <> 'for_each'",
        account_id,
        from_run,
        to_run,
        step_ids,
    )
    .execute(&mut *conn)
    .await?;
    // A worker reads the steps only of a run that has begun.
    query!(
        "update automation_runs set started_at = $3 where account_id = $1 and id = $2 and started_at is null",
        account_id,
        to_run,
        now,
    )
    .execute(conn)
    .await?;
    Ok(copied.rows_affected())
}
