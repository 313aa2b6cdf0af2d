//! The deletions that are under way, for the operator of the installation.

use chrono::{DateTime, Utc};
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// Deletions of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeBacklog {
    pub rows: i64,
    /// Those that a job-runner may work on now.
    pub due: i64,
    /// The one that has been due for longest.
    pub oldest_due: Option<DateTime<Utc>>,
}

/// The deletions that are under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeStatus {
    /// Trials past their deadline, which are not deleted yet.
    pub trials: PurgeBacklog,
    /// Events of deleted accounts and sites.
    pub events: PurgeBacklog,
    /// Those that were deleted once, and are deleted a second time for what was under way then.
    pub events_again: PurgeBacklog,
    /// Files of deleted accounts.
    pub files: PurgeBacklog,
    /// Those that were deleted once.
    pub files_again: PurgeBacklog,
}

/// Returns the deletions that are under way, of one account or all. A deleted account may still have some.
pub async fn read_purge_status(
    conn: &mut Conn,
    account_id: Option<Uuid>,
    now: DateTime<Utc>,
) -> Result<PurgeStatus, Error> {
    let trials = query_as!(
        PurgeBacklog,
        r#"select count(*) as "rows!", count(*) as "due!", min(claim_deadline) as oldest_due from accounts
           where claimed_at is null and claim_deadline <= $1 and ($2::uuid is null or id = $2)"#,
        now,
        account_id,
    )
    .fetch_one(&mut *conn)
    .await?;
    let mut backlogs = Vec::new();
    for again in [false, true] {
        let events = query_as!(
            PurgeBacklog,
            r#"select count(*) as "rows!", count(*) filter (where due_at <= $1) as "due!",
                      min(due_at) filter (where due_at <= $1) as oldest_due
               from event_purges
               where (deleted_at is not null) = $3 and ($2::uuid is null or account_id = $2)"#,
            now,
            account_id,
            again,
        );
        backlogs.push(events.fetch_one(&mut *conn).await?);
    }
    for again in [false, true] {
        let files = query_as!(
            PurgeBacklog,
            r#"select count(*) as "rows!", count(*) filter (where due_at <= $1) as "due!",
                      min(due_at) filter (where due_at <= $1) as oldest_due
               from blob_purges
               where (deleted_at is not null) = $3 and ($2::uuid is null or account_id = $2)"#,
            now,
            account_id,
            again,
        );
        backlogs.push(files.fetch_one(&mut *conn).await?);
    }
    let none = || PurgeBacklog { rows: 0, due: 0, oldest_due: None };
    let mut backlogs = backlogs.into_iter();
    let mut next = || backlogs.next().unwrap_or_else(none);
    Ok(PurgeStatus { trials, events: next(), events_again: next(), files: next(), files_again: next() })
}
