//! Submissions that are to start runs.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use serde_json::Value;
use sqlx::query;
use sqlx::types::Json;
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::{Conn, Error};

/// A submission that is to start a run.
#[derive(Debug)]
pub struct DueTrigger {
    pub id: i64,
    pub account_id: Uuid,
    pub plan: Plan,
    pub automation_id: Uuid,
    /// Whether a run is to be inserted: the automation is enabled, still has the form's trigger, and the account is not
    /// suspended.
    pub is_enabled: bool,
    pub definition_hash: Vec<u8>,
    /// Canonical JSON.
    pub definition: String,
    pub form_id: Uuid,
    pub submission_id: Uuid,
    pub external_id: Option<String>,
    pub payload: Value,
    pub submitted_at: DateTime<Utc>,
    pub depth: i16,
    pub traceparent: Option<String>,
}

/// Marks a submission to start the automations of its form, in the transaction of the submission. Waits for no lock of
/// them. Returns whether there are any.
pub async fn insert_triggers(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    submission_id: Uuid,
    depth: i16,
    traceparent: Option<&str>,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let inserted = query!(
        "insert into automation_triggers (account_id, automation_id, submission_id, depth, traceparent, created_at)
         select account_id, id, $3, $4, $5, $6 from automations
         where account_id = $1 and trigger_form_id = $2 and is_enabled order by id",
        account_id,
        form_id,
        submission_id,
        depth,
        traceparent,
        now,
    );
    Ok(inserted.execute(conn).await?.rows_affected() > 0)
}

/// Locks up to `limit` submissions that are to start runs, the oldest of each account. Accounts have equal shares, so that
/// the backlog of one does not delay the others. Concurrent workers skip them. Deletes those of deleted automations, so the
/// caller commits even if it gets none.
pub async fn lock_due_triggers(conn: &mut Conn, limit: i64) -> Result<Vec<DueTrigger>, Error> {
    let rows = query!(
        r#"with recursive step (account_id) as (
               (select account_id from automation_triggers order by account_id limit 1)
               union all
               select (select t.account_id from automation_triggers t
                       where t.account_id > step.account_id order by t.account_id limit 1)
               from step where step.account_id is not null
           ), waiting as materialized (
               -- In random order, because there can be more accounts than `limit`.
               select account_id from step where account_id is not null order by random() limit $1
           ), due as materialized (
               select t.* from waiting w
               cross join lateral (
                   select id, automation_id, submission_id, depth, traceparent from automation_triggers q
                   where q.account_id = w.account_id
                   order by q.id limit $1 / (select count(*) from waiting) for update skip locked
               ) t
           ), deleted as (
               delete from automation_triggers t using due
               where t.id = due.id and not exists (select from automations a where a.id = due.automation_id)
           )
           select t.id, a.account_id, o.plan,
                  (a.is_enabled and o.suspended_at is null and a.trigger_form_id is not distinct from s.form_id)
                      as "is_enabled!",
                  t.automation_id, a.definition_hash, d.definition, s.form_id, t.submission_id, s.external_id,
                  s.payload as "payload: Json<Value>", s.created_at, t.depth, t.traceparent
           from due t
           join automations a on a.id = t.automation_id
           join accounts o on o.id = a.account_id
           join automation_definitions d on d.account_id = a.account_id and d.hash = a.definition_hash
           join submissions s on s.id = t.submission_id
           order by t.id"#,
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(DueTrigger {
                id: row.id,
                account_id: row.account_id,
                plan: read_plan(&row.plan)?,
                automation_id: row.automation_id,
                is_enabled: row.is_enabled,
                definition_hash: row.definition_hash,
                definition: row.definition,
                form_id: row.form_id,
                submission_id: row.submission_id,
                external_id: row.external_id,
                payload: row.payload.0,
                submitted_at: row.created_at,
                depth: row.depth,
                traceparent: row.traceparent,
            })
        })
        .collect()
}

/// Deletes triggers whose runs are inserted.
pub async fn delete_triggers(conn: &mut Conn, ids: &[i64]) -> Result<(), Error> {
    query!("delete from automation_triggers where id = any($1)", ids).execute(conn).await?;
    Ok(())
}
