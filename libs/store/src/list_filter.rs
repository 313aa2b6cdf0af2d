//! Filter, cursor and size of a list query.

use domain::{Cursor, ListBudget};
use futures::{Stream, TryStreamExt};
use uuid::Uuid;

use crate::Error;

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

/// One page of a list, bounded in rows and in bytes.
#[derive(Debug, Clone)]
pub struct ListPage<R> {
    pub rows: Vec<R>,
    /// Whether there are more rows after these.
    pub has_more: bool,
}

/// Collects rows until the page's limit of rows or of bytes is reached. The rest, if any, is discarded as it arrives: an
/// unfinished statement would close the connection.
pub(crate) async fn collect_page<R, E>(
    rows: impl Stream<Item = Result<R, E>>,
    limit: i64,
    bytes_of: impl Fn(&R) -> usize,
) -> Result<ListPage<R>, Error>
where
    Error: From<E>,
{
    let mut rows = std::pin::pin!(rows);
    let mut budget = ListBudget::new(limit);
    let mut page = ListPage { rows: Vec::new(), has_more: false };
    while let Some(row) = rows.try_next().await? {
        page.has_more = page.has_more || !budget.admits(bytes_of(&row));
        if !page.has_more {
            page.rows.push(row);
        }
    }
    Ok(page)
}

/// Selects one page of rows. The parameters of the statement are the account, the folder, the ids, the two parts of the
/// cursor and the limit, in this order, followed by `$more`. It must return up to one row more than the limit.
macro_rules! list_rows {
    ($row:ident, $conn:expr, $account_id:expr, $filter:expr, $sql:literal $(, $more:expr)*) => {
        $crate::list_filter::list_query!($row, $account_id, $filter, $sql $(, $more)*).fetch_all($conn).await
    };
}
pub(crate) use list_rows;

/// Builds the statement of [`list_rows`], to be read row by row with [`collect_page`].
macro_rules! list_query {
    ($row:ident, $account_id:expr, $filter:expr, $sql:literal $(, $more:expr)*) => {
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
    };
}
pub(crate) use list_query;
