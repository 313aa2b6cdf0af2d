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
    /// Whether the newest rows come first; otherwise the oldest.
    pub newest_first: bool,
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

/// Selects one page of rows in the order of the filter. `$sql` ends with its conditions; `$at` and `$id` are the columns of
/// the cursor. The parameters of the statement are the account, the folder, the ids, the two parts of the cursor and the
/// limit, in this order, followed by `$more`. Returns up to one row more than the limit.
///
/// Each order has a statement of its own, so that both read an index instead of sorting.
macro_rules! sorted_rows {
    ($row:ident, $conn:expr, $account_id:expr, $filter:expr, $sql:literal, $at:literal, $id:literal
     $(, $more:expr)*) => {
        futures::TryStreamExt::try_collect::<Vec<_>>(
            $crate::list_filter::sorted_stream!($row, $conn, $account_id, $filter, $sql, $at, $id $(, $more)*),
        )
        .await
    };
}
pub(crate) use sorted_rows;

/// As [`sorted_rows`], to be read row by row with [`collect_page`]. The statement may be put together from several texts.
macro_rules! sorted_stream {
    ($row:ident, $conn:expr, $account_id:expr, $filter:expr, $sql:literal $(+ $condition:literal)*, $at:literal,
     $id:literal $(, $more:expr)*) => {
        if $filter.newest_first {
            sqlx::query_as!(
                $row,
                $sql $(+ $condition)* + " and ($4::timestamptz is null or (" + $at + ", " + $id + ") < ($4, $5)) order by " + $at
                    + " desc, " + $id + " desc limit $6::bigint + 1",
                $account_id,
                $filter.folder_id,
                $filter.ids.as_deref(),
                $filter.after.map(|after| after.created_at),
                $filter.after.map(|after| after.id),
                $filter.limit,
                $($more),*
            )
            .fetch($conn)
        } else {
            sqlx::query_as!(
                $row,
                $sql $(+ $condition)* + " and ($4::timestamptz is null or (" + $at + ", " + $id + ") > ($4, $5)) order by " + $at
                    + ", " + $id + " limit $6::bigint + 1",
                $account_id,
                $filter.folder_id,
                $filter.ids.as_deref(),
                $filter.after.map(|after| after.created_at),
                $filter.after.map(|after| after.id),
                $filter.limit,
                $($more),*
            )
            .fetch($conn)
        }
    };
}
pub(crate) use sorted_stream;
