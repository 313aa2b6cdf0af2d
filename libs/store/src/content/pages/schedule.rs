//! Scheduled publication of pages.

use chrono::{DateTime, Utc};
use contract::Change;
use sqlx::{query_as, query_scalar};

use crate::entries::PageLocation;
use crate::{Conn, Error, outbox};

/// Publishes up to `limit` due pages, the most overdue first, and writes the changes to the outbox. Returns how many.
/// Skips pages that are locked; they remain due.
pub async fn publish_due(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<usize, Error> {
    let published = query_as!(
        PageLocation,
        "update pages set is_published = true, publish_at = null,
            updated_at = greatest(date_trunc('milliseconds', $1::timestamptz),
                                  date_trunc('milliseconds', updated_at) + interval '1 millisecond')
         where id in (select id from pages where publish_at <= $1
                      order by publish_at, id limit $2 for no key update skip locked)
         returning subdomain_id, slug, path",
        now,
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    let changes: Vec<Change> = published.into_iter().map(Change::from).collect();
    outbox::insert_changes(conn, &changes, now).await?;
    Ok(changes.len())
}

/// Returns when the next scheduled page is due.
pub async fn find_next_due(conn: &mut Conn) -> Result<Option<DateTime<Utc>>, Error> {
    let next = query_scalar!("select min(publish_at) from pages where publish_at is not null");
    Ok(next.fetch_one(conn).await?)
}
