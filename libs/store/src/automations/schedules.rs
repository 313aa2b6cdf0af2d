//! Schedules that are due.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use sqlx::query;
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::{Conn, Error};

/// An automation whose schedule is due.
#[derive(Debug)]
pub struct DueSchedule {
    pub account_id: Uuid,
    pub plan: Plan,
    pub is_suspended: bool,
    /// The account's time zone.
    pub timezone: String,
    pub automation_id: Uuid,
    pub definition_hash: Vec<u8>,
    /// Canonical JSON.
    pub definition: String,
    /// The time that is due.
    pub fire_at: DateTime<Utc>,
}

/// Locks up to `limit` automations whose schedules are due. Concurrent workers skip them.
pub async fn lock_due_schedules(
    conn: &mut Conn,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<DueSchedule>, Error> {
    let rows = query!(
        r#"select a.account_id, o.plan, o.suspended_at is not null as "is_suspended!", o.timezone, a.id,
                  a.definition_hash, d.definition, a.next_fire_at as "fire_at!"
           from automations a
           join accounts o on o.id = a.account_id
           join automation_definitions d on d.account_id = a.account_id and d.hash = a.definition_hash
           where a.next_fire_at <= $1 and a.is_enabled
           order by a.next_fire_at limit $2 for no key update of a skip locked"#,
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(DueSchedule {
                account_id: row.account_id,
                plan: read_plan(&row.plan)?,
                is_suspended: row.is_suspended,
                timezone: row.timezone,
                automation_id: row.id,
                definition_hash: row.definition_hash,
                definition: row.definition,
                fire_at: row.fire_at,
            })
        })
        .collect()
}

/// Locks up to `limit` schedules of an account that are not due yet, in the order of their ids after `after`. Returns id and
/// definition of each.
pub async fn lock_pending_schedules(
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
    after: Uuid,
    limit: i64,
) -> Result<Vec<(Uuid, String)>, Error> {
    let rows = query!(
        "select a.id, d.definition from automations a
         join automation_definitions d on d.account_id = a.account_id and d.hash = a.definition_hash
         where a.account_id = $1 and a.id > $2 and a.next_fire_at > $3 and a.is_enabled
         order by a.id limit $4 for no key update of a",
        account_id,
        after,
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.definition)).collect())
}

/// Sets when a locked schedule fires next; `None` if it never does.
pub async fn advance_schedule(
    conn: &mut Conn,
    account_id: Uuid,
    automation_id: Uuid,
    next_fire_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    query!(
        "update automations set next_fire_at = $3 where account_id = $1 and id = $2",
        account_id,
        automation_id,
        next_fire_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}
