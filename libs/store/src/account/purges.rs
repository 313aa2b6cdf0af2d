//! Deletes unclaimed accounts after their deadline, and schedules the deletion of their events in ClickHouse.
//!
//! The deletion begins by locking the account's row, as a claim does, and by removing its claim token; from then on it
//! can't be claimed, however long the rest takes. Its events are deleted later, from rows that outlive it.

use chrono::{DateTime, Utc};
use contract::Change;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error, accounts, blobs, outbox};

/// How long a purge waits for a lock before it yields. It is below the second after which Postgres looks for deadlocks,
/// so that in a deadlock with a visitor's request the purge yields.
const LOCK_TIMEOUT: &str = "500ms";

/// Events to delete from ClickHouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPurge {
    pub id: i64,
    pub account_id: Uuid,
    /// `None` for all sites of the account.
    pub site_id: Option<Uuid>,
    /// Whether they were deleted once already; after the second time the row is removed.
    pub again: bool,
}

/// Returns up to `limit` expired trials, oldest first.
pub async fn list_expired(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<Vec<Uuid>, Error> {
    let expired = query_scalar!(
        "select id from accounts where claimed_at is null and claim_deadline <= $1
         order by claim_deadline limit $2",
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(expired)
}

/// Locks an expired trial and makes it unclaimable. Returns `false`, with nothing changed, if it is claimed, being
/// claimed, or locked by another purge.
pub async fn lock_expired(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<bool, Error> {
    query!("select set_config('lock_timeout', $1, true)", LOCK_TIMEOUT).fetch_one(&mut *conn).await?;
    let locked = query_scalar!(
        "select id from accounts where id = $1 and claimed_at is null and claim_deadline <= $2
         for update skip locked",
        account_id,
        now,
    )
    .fetch_optional(&mut *conn)
    .await?;
    if locked.is_none() {
        return Ok(false);
    }
    query!("update accounts set claim_token_hash = null where id = $1", account_id).execute(conn).await?;
    Ok(true)
}

/// Deletes up to `limit` rows of the kinds an account has without bound: deliveries first, then submissions, then
/// runs of automations, which no submission starts any more. Returns how many; fewer than `limit` means that none are left.
pub async fn delete_bulk(conn: &mut Conn, account_id: Uuid, limit: i64) -> Result<i64, Error> {
    let count =
        |result: sqlx::postgres::PgQueryResult| i64::try_from(result.rows_affected()).unwrap_or(limit);
    let deliveries = query!(
        "delete from deliveries where id in (
             select d.id from webhooks w join deliveries d on d.webhook_id = w.id where w.account_id = $1 limit $2)",
        account_id,
        limit,
    );
    let mut deleted = count(deliveries.execute(&mut *conn).await?);
    let submissions = query!(
        "delete from submissions where id in (select id from submissions where account_id = $1 limit $2)",
        account_id,
        limit - deleted,
    );
    deleted += count(submissions.execute(&mut *conn).await?);
    let runs = query!(
        "with found as materialized (
             select r.id from automations a join automation_runs r on r.automation_id = a.id
             where a.account_id = $1 limit $2
         ), held as materialized (
             select r.id from automation_runs r join found using (id) order by r.id for update of r
         )
         delete from automation_runs r using held where r.id = held.id",
        account_id,
        limit - deleted,
    );
    Ok(deleted + count(runs.execute(conn).await?))
}

/// Keeps the names of the account's subdomains, present and former, from being assigned again until `kept_until`. Also
/// deletes some of the names that have expired.
pub async fn rest_names(
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
    kept_until: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "delete from resting_names where name in (
             select name from resting_names where kept_until <= $1 limit 100 for update skip locked)",
        now,
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "insert into resting_names (name, kept_until)
         select name, max(kept_until) from (
             select name, $2::timestamptz as kept_until from subdomains where account_id = $1
             union all select name, kept_until from former_names where account_id = $1 and kept_until > $3) as names
         group by name
         on conflict (name) do update set kept_until = greatest(resting_names.kept_until, excluded.kept_until)",
        account_id,
        kept_until,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes an account with everything that refers to it, publishes the change to all caches, and schedules the deletion
/// of its events from `now` on.
pub async fn delete_account(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    let mut changes = accounts::list_cached_items(conn, account_id).await?;
    let subdomains = query_scalar!("select id from subdomains where account_id = $1", account_id)
        .fetch_all(&mut *conn)
        .await?;
    changes.extend(subdomains.into_iter().map(|subdomain_id| Change::SubdomainGone { subdomain_id }));
    outbox::insert_changes(conn, &changes, now).await?;
    insert_event_purge(conn, account_id, None, now).await?;
    blobs::insert_purge(conn, account_id, now).await?;
    query!("delete from accounts where id = $1", account_id).execute(conn).await?;
    Ok(())
}

/// Schedules the deletion of a site's events, or without a site of all the account's events, from `now` on. Also records the
/// deletion of the site or account for restores ([`crate::backups::deletions`]).
pub async fn insert_event_purge(
    conn: &mut Conn,
    account_id: Uuid,
    site_id: Option<Uuid>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "with recorded as (
             insert into deletions (account_id, site_id, deleted_at) values ($1, $2, $3)
         )
         insert into event_purges (account_id, site_id, due_at, created_at) values ($1, $2, $3, $3)",
        account_id,
        site_id,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns whether a deletion of events is due.
pub async fn has_due_event_purge(conn: &mut Conn, now: DateTime<Utc>) -> Result<bool, Error> {
    let due = query_scalar!(r#"select exists (select from event_purges where due_at <= $1) as "due!""#, now)
        .fetch_one(conn)
        .await?;
    Ok(due)
}

/// Leases up to `limit` due deletions of events. They are due again at `retry_at` unless they are finished by then, so
/// a worker that dies costs only time.
pub async fn lease_event_purges(
    conn: &mut Conn,
    now: DateTime<Utc>,
    retry_at: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<EventPurge>, Error> {
    let leased = query_as!(
        EventPurge,
        r#"update event_purges set due_at = $2 where id in (
             select id from event_purges where due_at <= $1 order by due_at limit $3 for update skip locked)
           returning id, account_id, site_id, deleted_at is not null as "again!""#,
        now,
        retry_at,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(leased)
}

/// Records that ClickHouse deleted these events. After the first deletion another one is due at `again_at`; after the
/// second the row is removed.
pub async fn finish_event_purges(
    conn: &mut Conn,
    purges: &[EventPurge],
    now: DateTime<Utc>,
    again_at: DateTime<Utc>,
) -> Result<(), Error> {
    let ids = |again: bool| -> Vec<i64> {
        purges.iter().filter(|purge| purge.again == again).map(|purge| purge.id).collect()
    };
    query!("delete from event_purges where id = any($1)", &ids(true)).execute(&mut *conn).await?;
    query!(
        "update event_purges set deleted_at = $2, due_at = $3 where id = any($1)",
        &ids(false),
        now,
        again_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}
