//! What a link that resumes a run leads to.

use chrono::{DateTime, Utc};
use sqlx::query;
use uuid::Uuid;

use super::RunStatus;
use crate::{Conn, Error};

/// A run as the bearer of its link finds it.
#[derive(Debug, Clone, Copy)]
pub struct LinkedRun {
    pub status: RunStatus,
    /// Number of the wait that a link ends now.
    pub resume_number: Option<i32>,
    /// When a waiting run is due again.
    pub due_at: Option<DateTime<Utc>>,
}

/// Returns the run behind a link. `None` if it is deleted or its account is suspended. Takes no account: the link proves
/// that its bearer may.
pub async fn find_linked_run(conn: &mut Conn, run_id: Uuid) -> Result<Option<LinkedRun>, Error> {
    let row = query!(
        "select r.status, r.resume_number, r.due_at
         from automation_runs r join accounts o on o.id = r.account_id
         where r.id = $1 and o.suspended_at is null",
        run_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| LinkedRun {
        status: RunStatus::parse(&row.status).unwrap_or(RunStatus::Error),
        resume_number: row.resume_number,
        due_at: row.due_at,
    }))
}
