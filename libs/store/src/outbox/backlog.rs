//! What is in the outbox, for the operator of the installation.

use chrono::{DateTime, Utc};
use contract::{Job, Signal};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::{query, query_as};

use crate::{Conn, Error};

/// Rows that are read at a time.
const BATCH: i64 = 500;

/// The rows of one kind of message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxGroup {
    /// `job` or `signal`.
    pub kind: String,
    /// The name of the job or change.
    pub message: Option<String>,
    pub rows: i64,
    /// Rows that the relay has not taken yet although it may. The others are postponed.
    pub due: i64,
    /// When the first of them was inserted.
    pub oldest: DateTime<Utc>,
}

/// A row that this version can't parse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRow {
    pub id: i64,
    pub kind: String,
    /// The name of the job or change, if it has one.
    pub message: Option<String>,
    /// Why it can't be parsed.
    pub reason: String,
    pub due_at: DateTime<Utc>,
}

/// Returns the rows by kind of message, most first.
pub async fn list_groups(conn: &mut Conn, now: DateTime<Utc>) -> Result<Vec<OutboxGroup>, Error> {
    let groups = query_as!(
        OutboxGroup,
        r#"select kind, coalesce(body ->> 'job', body ->> 'change', body ->> 'signal') as message, count(*) as "rows!",
                  count(*) filter (where due_at <= $1) as "due!", min(created_at) as "oldest!"
           from outbox group by 1, 2 order by 3 desc, 1, 2"#,
        now,
    );
    Ok(groups.fetch_all(conn).await?)
}

/// Returns up to `limit` rows that this version can't parse.
pub async fn list_unreadable(conn: &mut Conn, limit: usize) -> Result<Vec<UnreadableRow>, Error> {
    let mut unreadable = Vec::new();
    let mut after = i64::MIN;
    while unreadable.len() < limit {
        let rows = query!(
            r#"select id, kind, body, due_at, coalesce(body ->> 'job', body ->> 'change', body ->> 'signal') as message
               from outbox where id > $1 order by id limit $2"#,
            after,
            BATCH,
        )
        .fetch_all(&mut *conn)
        .await?;
        let Some(last) = rows.last() else { break };
        after = last.id;
        for row in rows {
            let reason = match row.kind.as_str() {
                "job" => reason::<Job>(row.body),
                _ => reason::<Signal>(row.body),
            };
            if let Some(reason) = reason {
                let (id, kind, message, due_at) = (row.id, row.kind, row.message, row.due_at);
                unreadable.push(UnreadableRow { id, kind, message, reason, due_at });
            }
        }
    }
    unreadable.truncate(limit);
    Ok(unreadable)
}

/// Returns why a body can't be parsed.
fn reason<T: DeserializeOwned>(body: Value) -> Option<String> {
    serde_json::from_value::<T>(body).err().map(|error| error.to_string())
}

/// Makes all postponed rows due. Returns how many.
pub async fn make_due(conn: &mut Conn, now: DateTime<Utc>) -> Result<u64, Error> {
    let done = query!("update outbox set due_at = $1 where due_at > $1", now).execute(conn).await?;
    Ok(done.rows_affected())
}
