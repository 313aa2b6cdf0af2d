//! The transactional outbox: jobs and signals to send after a commit.
//!
//! The job-runner relays due rows. A rollback removes them, and a relay that is killed leaves them in place.

mod backlog;

use chrono::{DateTime, Utc};
use contract::{Change, Job, Signal};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{query, query_scalar};

use crate::{Conn, Error};

pub use backlog::{OutboxGroup, UnreadableRow, list_groups, list_unreadable, make_due};

/// A due row.
#[derive(Debug)]
pub struct OutboxRow<T> {
    /// Rows are relayed in the order of their ids.
    pub id: i64,
    /// `None` if this version can't parse the body.
    pub message: Option<T>,
    /// The type of the message, as its writer named it.
    pub kind: String,
    /// W3C trace context of the writer.
    pub traceparent: Option<String>,
    pub created_at: DateTime<Utc>,
}

/// Inserts a signal to be sent at `due_at`. Returns the id of the row. A caller that sends the signal right after its
/// commit, which is faster, deletes the row; otherwise the relay sends it.
pub async fn insert_signal(
    conn: &mut Conn,
    signal: &Signal,
    now: DateTime<Utc>,
    due_at: DateTime<Utc>,
) -> Result<i64, Error> {
    let id = query_scalar!(
        "insert into outbox (kind, body, due_at, created_at) values ('signal', $1, $2, $3) returning id",
        Json(signal) as _,
        due_at,
        now,
    )
    .fetch_one(conn)
    .await?;
    Ok(id)
}

/// Inserts many changes, for the relay to publish now and in this order.
pub async fn insert_changes(conn: &mut Conn, changes: &[Change], now: DateTime<Utc>) -> Result<(), Error> {
    let signals: Vec<_> = changes.iter().map(|change| Json(Signal::Changed(change.clone()))).collect();
    query!(
        "insert into outbox (kind, body, due_at, created_at)
         select 'signal', body, $2, $2 from unnest($1::jsonb[]) with ordinality as change (body, position) order by position",
        signals as _,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Inserts jobs and changes, due now and in this order. Returns the same signals, which the caller may send right after
/// the commit to save time.
pub async fn insert_orders(
    conn: &mut Conn,
    jobs: &[Job],
    changes: &[Change],
    traceparent: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Vec<Signal>, Error> {
    let mut signals: Vec<Signal> = changes.iter().cloned().map(Signal::Changed).collect();
    if jobs.is_empty() && signals.is_empty() {
        return Ok(signals);
    }
    query!(
        "insert into outbox (kind, body, traceparent, due_at, created_at)
         select 'job', body, $3::text, $4::timestamptz, $4 from unnest($1::jsonb[]) as t (body)
         union all
         select 'signal', body, $3, $4, $4 from unnest($2::jsonb[]) as t (body)",
        jobs.iter().map(Json).collect::<Vec<_>>() as _,
        signals.iter().map(Json).collect::<Vec<_>>() as _,
        traceparent,
        now,
    )
    .execute(conn)
    .await?;
    signals.push(Signal::OutboxFilled);
    Ok(signals)
}

/// Locks up to `limit` due jobs. Concurrent relays skip them.
pub async fn lock_jobs(
    conn: &mut Conn,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<OutboxRow<Job>>, Error> {
    lock_due(conn, "job", now, limit).await
}

/// Locks up to `limit` due signals. Concurrent relays skip them.
pub async fn lock_signals(
    conn: &mut Conn,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<OutboxRow<Signal>>, Error> {
    lock_due(conn, "signal", now, limit).await
}

async fn lock_due<T: DeserializeOwned>(
    conn: &mut Conn,
    kind: &str,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<OutboxRow<T>>, Error> {
    let rows = query!(
        "select id, body, traceparent, created_at from outbox where kind = $1 and due_at <= $2
         order by due_at, id limit $3 for update skip locked",
        kind,
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    let due = rows.into_iter().map(|row| OutboxRow {
        id: row.id,
        kind: kind_of(&row.body),
        message: serde_json::from_value(row.body).ok(),
        traceparent: row.traceparent,
        created_at: row.created_at,
    });
    Ok(due.collect())
}

/// Returns the tags of a message, such as `mail_help_v1` or `changed/page`.
fn kind_of(body: &Value) -> String {
    let tags = ["job", "signal", "change"].iter().filter_map(|tag| body[tag].as_str());
    tags.collect::<Vec<_>>().join("/")
}

/// Inserts a job that this version can't parse, as its writer serialized it, for a newer relay at `due_at`.
pub async fn insert_unreadable_job(
    conn: &mut Conn,
    job: &Value,
    traceparent: Option<&str>,
    now: DateTime<Utc>,
    due_at: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into outbox (kind, body, traceparent, due_at, created_at) values ('job', $1, $2, $3, $4)",
        job,
        traceparent,
        due_at,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes rows that were relayed.
pub async fn delete(conn: &mut Conn, ids: &[i64]) -> Result<(), Error> {
    query!("delete from outbox where id = any($1)", ids).execute(conn).await?;
    Ok(())
}

/// Postpones rows, each until its time, so that unreadable rows don't block the others.
pub async fn postpone(conn: &mut Conn, rows: &[(i64, DateTime<Utc>)]) -> Result<(), Error> {
    let (ids, due): (Vec<i64>, Vec<DateTime<Utc>>) = rows.iter().copied().unzip();
    query!(
        "update outbox set due_at = postponed.due_at
         from unnest($1::bigint[], $2::timestamptz[]) as postponed (id, due_at) where outbox.id = postponed.id",
        &ids,
        &due,
    )
    .execute(conn)
    .await?;
    Ok(())
}
