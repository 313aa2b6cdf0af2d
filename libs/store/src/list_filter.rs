//! Which part of an account's rows a listing shows.

use domain::Cursor;
use uuid::Uuid;

/// What narrows a listing, and how much of it is asked for.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only what lies in this folder.
    pub folder_id: Option<Uuid>,
    /// Only these.
    pub ids: Option<Vec<Uuid>>,
    /// Only what follows this row.
    pub after: Option<Cursor>,
    /// Most rows of one answer; listings give one more, by which it is seen that there is more.
    pub limit: i64,
}

/// Selects one page of rows. The statement's parameters are the account, the folder, the ids, the two parts of the
/// cursor and the limit, in this order, and then `$more`. It must return one row more than the limit.
macro_rules! list_rows {
    ($row:ident, $conn:expr, $account_id:expr, $filter:expr, $sql:literal $(, $more:expr)*) => {
        sqlx::query_as!(
            $row,
            $sql,
            $account_id,
            $filter.folder_id,
            $filter.ids.as_deref(),
            $filter.after.map(|after| after.created_at),
            $filter.after.map(|after| after.id),
            $filter.limit,
            $($more),*
        )
        .fetch_all($conn)
        .await
    };
}
pub(crate) use list_rows;
