//! The numbers of a form's submissions by status.

use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// The numbers of a form's submissions by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusCounts {
    pub received: i64,
    pub spam: i64,
    pub archived: i64,
}

/// Counts the submissions of a form by status. The form's count includes received and archived ones, so that only the index of
/// those that are not received is read.
pub async fn count_by_status(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
) -> Result<StatusCounts, Error> {
    let counts = query_as!(
        StatusCounts,
        r#"select greatest(f.submission_count
                           + coalesce((select sum(submissions) from form_tallies where form_id = f.id), 0)::bigint
                           - other.archived, 0) as "received!", other.spam as "spam!", other.archived as "archived!"
           from forms f cross join lateral (
               select count(*) filter (where s.status = 'spam') as spam,
                      count(*) filter (where s.status = 'archived') as archived
               from submissions s where s.form_id = f.id and s.status <> 'received'
           ) as other
           where f.account_id = $1 and f.id = $2"#,
        account_id,
        form_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(counts.unwrap_or(StatusCounts { received: 0, spam: 0, archived: 0 }))
}
