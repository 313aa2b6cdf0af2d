//! The ids of deleted accounts and sites. They outlive what they name, for restores to a point in time before the deletion.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// A deletion. Over all accounts, for restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deletion {
    pub deleted_at: DateTime<Utc>,
    pub account_id: Uuid,
    /// `None` for the account with everything.
    pub site_id: Option<Uuid>,
}

/// Returns the deletions since a time, oldest first.
pub async fn list_deletions(conn: &mut Conn, since: DateTime<Utc>) -> Result<Vec<Deletion>, Error> {
    let deletions = query_as!(
        Deletion,
        "select deleted_at, account_id, site_id from deletions where deleted_at >= $1 order by id",
        since,
    );
    Ok(deletions.fetch_all(conn).await?)
}

/// Forgets the deletions before a time, which are in no backup.
pub async fn delete_deletions_before(conn: &mut Conn, before: DateTime<Utc>) -> Result<u64, Error> {
    let deleted = query!("delete from deletions where deleted_at < $1", before).execute(conn).await?;
    Ok(deleted.rows_affected())
}
