//! What was changed in an account: one row for each change, inserted in its transaction. It holds no payload and no address.

use chrono::{DateTime, Utc};
use domain::Cursor;
use domain::plans::Plan;
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// The author of a change.
#[derive(Debug, Clone, Copy)]
pub enum Actor {
    /// The person of a session.
    Session(Uuid),
    Key(Uuid),
    Automation(Uuid),
    /// An operator. The log of operators has the name.
    Operator,
}

/// What was changed, with its name before a deletion or after any other change.
#[derive(Debug, Clone, Copy)]
pub struct ChangedResource<'a> {
    /// `forms`, `pages` and so on.
    pub kind: &'a str,
    pub id: Uuid,
    pub name: &'a str,
}

/// A change to store.
#[derive(Debug)]
pub struct NewActivity<'a> {
    pub at: DateTime<Utc>,
    pub actor: Actor,
    /// An operation id such as `forms.update`, or an operator's command.
    pub operation: &'a str,
    /// `None` for the account itself, and for many resources at once.
    pub resource: Option<ChangedResource<'a>>,
    pub request_id: Option<&'a str>,
}

/// A change.
#[derive(Debug, Clone)]
pub struct Activity {
    pub id: Uuid,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// `person`, `key`, `automation` or `operator`.
    pub actor_type: String,
    /// The identity, key or automation; it may be gone.
    pub actor_id: Option<Uuid>,
    pub actor_name: String,
    pub operation: String,
    pub resource_type: Option<String>,
    pub resource_id: Option<Uuid>,
    pub resource_name: Option<String>,
    pub request_id: Option<String>,
}

/// Filter of a list.
#[derive(Debug, Clone, Default)]
pub struct ActivityFilter {
    pub actor_type: Option<String>,
    pub operation: Option<String>,
    pub resource_id: Option<Uuid>,
    /// Inclusive.
    pub from: Option<DateTime<Utc>>,
    /// Exclusive.
    pub until: Option<DateTime<Utc>>,
    /// Only rows after this one.
    pub after: Option<Cursor>,
    pub limit: i64,
}

/// Inserts a change of the account. Does nothing if there is no such account.
pub async fn insert_activity(
    conn: &mut Conn,
    account_id: Uuid,
    activity: &NewActivity<'_>,
) -> Result<(), Error> {
    let (actor_type, actor_id) = match activity.actor {
        Actor::Session(id) => ("person", Some(id)),
        Actor::Key(id) => ("key", Some(id)),
        Actor::Automation(id) => ("automation", Some(id)),
        Actor::Operator => ("operator", None),
    };
    query!(
        "insert into activity (account_id, at, expires_at, actor_type, actor_id, actor_name, operation, resource_type,
                               resource_id, resource_name, request_id)
         select a.id, $2::timestamptz, $2::timestamptz + make_interval(days => case a.plan when 'scale' then $10::int else $11::int end), $3,
                case $3 when 'person' then (select identity_id from sessions where id = $4) else $4 end,
                coalesce(case $3
                    when 'person' then (select coalesce(i.name, i.email, i.subject) from sessions s
                                        join identities i on i.id = s.identity_id where s.id = $4)
                    when 'key' then (select label from api_keys where account_id = $1 and id = $4)
                    when 'automation' then (select name from automations where account_id = $1 and id = $4)
                    else 'operator' end, ''),
                $5, $6, $7, $8, $9
         from accounts a where a.id = $1",
        account_id,
        activity.at,
        actor_type,
        actor_id,
        activity.operation,
        activity.resource.map(|resource| resource.kind),
        activity.resource.map(|resource| resource.id),
        activity.resource.map(|resource| resource.name),
        activity.request_id,
        Plan::Scale.activity_days(),
        Plan::Free.activity_days(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the changes of an account, newest first, and up to one more than the limit.
pub async fn list_activity(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ActivityFilter,
) -> Result<Vec<Activity>, Error> {
    let rows = query_as!(
        Activity,
        "select id, at as created_at, actor_type, actor_id, actor_name, operation, resource_type, resource_id,
                resource_name, request_id
         from activity
         where account_id = $1 and ($2::text is null or actor_type = $2) and ($3::text is null or operation = $3)
           and ($4::uuid is null or resource_id = $4)
           and ($5::timestamptz is null or at >= $5) and ($6::timestamptz is null or at < $6)
           and ($7::timestamptz is null or (at, id) < ($7, $8))
         order by at desc, id desc limit $9::bigint + 1",
        account_id,
        filter.actor_type,
        filter.operation,
        filter.resource_id,
        filter.from,
        filter.until,
        filter.after.map(|after| after.created_at),
        filter.after.map(|after| after.id).unwrap_or_default(),
        filter.limit,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// Deletes up to `limit` changes that expired before `now`. Returns how many; fewer than `limit` means that none are left.
///
/// Over all accounts: it is the retention.
pub async fn delete_expired(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = query!(
        "delete from activity where id in (
             select id from activity where expires_at < $1 order by expires_at limit $2 for update skip locked)",
        now,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(deleted.rows_affected())
}
