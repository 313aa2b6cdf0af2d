//! Filter and cursor of a list query.

use domain::Cursor;
use uuid::Uuid;

/// Filter and page of a list query.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only resources in this folder.
    pub folder_id: Option<Uuid>,
    /// Only resources with these ids.
    pub ids: Option<Vec<Uuid>>,
    /// Only rows after this one.
    pub after: Option<Cursor>,
    /// Page size. A list query returns up to one row more, which shows that there is a next page.
    pub limit: i64,
}

/// Selects one page of rows. The parameters of the statement are the account, the folder, the ids, the two parts of the
/// cursor and the limit, in this order, followed by `$more`. It must return up to one row more than the limit.
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
