//! Pagination of lists: the query parameters and the response's `nextCursor`.

use domain::{Cursor, CursorOrder, FieldError, Listed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Problem;

const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 100;

/// The query of a paginated list. A page also ends at about 1 MiB; a larger row is returned alone.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaginationQuery {
    /// Maximum number of rows in one response: 1 to 100, 50 by default.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// The `nextCursor` of the previous response; absent for the first page.
    #[schemars(extend("format" = "cursor"))]
    cursor: Option<String>,
    #[serde(skip)]
    sort: Option<Sort>,
}

impl PaginationQuery {
    /// Creates the query of a list that has further parameters.
    pub fn new(limit: Option<i64>, cursor: Option<String>) -> Self {
        Self { limit, cursor, sort: None }
    }

    /// Adds the order that the request asks for.
    #[must_use]
    pub fn sorted(self, sort: Option<Sort>) -> Self {
        Self { sort, ..self }
    }

    /// Returns whether the newest rows come first because the request asks so.
    pub fn is_newest_first(&self) -> bool {
        self.sort == Some(Sort::Newest)
    }

    /// Returns the validated limit and cursor.
    pub fn read(&self) -> Result<(i64, Option<Cursor>), Problem> {
        self.read_up_to(MAX_LIMIT, DEFAULT_LIMIT)
    }

    /// As [`Self::read`], for a list with another maximum and default of rows.
    pub fn read_up_to(&self, max: i64, default: i64) -> Result<(i64, Option<Cursor>), Problem> {
        let limit = self.limit.unwrap_or(default);
        if !(1..=max).contains(&limit) {
            let message = format!("limit must be 1 to {max}");
            return Err(Problem::validation(vec![FieldError::new("limit", "range", message)]));
        }
        let Some(word) = &self.cursor else { return Ok((limit, None)) };
        let wrong = |message| Problem::validation(vec![FieldError::new("cursor", "cursor", message)]);
        let (cursor, order) = Cursor::parse(word)
            .ok_or_else(|| wrong("cursor must be the `nextCursor` of an earlier response"))?;
        match (order, order_of(self.is_newest_first())) {
            (CursorOrder::NewestFirst, CursorOrder::Usual) => {
                Err(wrong("cursor is of a list with sort=newest; send sort=newest with it"))
            }
            (CursorOrder::Usual, CursorOrder::NewestFirst) => {
                Err(wrong("cursor is of a list without sort=newest; leave out sort, or begin without cursor"))
            }
            _ => Ok((limit, Some(cursor))),
        }
    }
}

/// The order of a list, by the creation of its rows. Lists that take this parameter begin with the oldest by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Sort {
    Oldest,
    Newest,
}

fn order_of(newest_first: bool) -> CursorOrder {
    if newest_first { CursorOrder::NewestFirst } else { CursorOrder::Usual }
}

/// Pagination of a list response, beside the rows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageInfo {
    /// Value of `cursor` for the next page; null on the last one.
    pub next_cursor: Option<String>,
    /// Whether there is a next page.
    pub has_more: bool,
}

/// The body of a list response.
pub trait ListResponse {
    /// A row in the response.
    type View;

    /// Creates the body from its rows.
    fn new(rows: Vec<Self::View>, page: PageInfo) -> Self;

    /// Returns the pagination of the list.
    fn page(&self) -> &PageInfo;
}

/// Declares the body of a list: its rows under the noun's plural, and the fields of [`PageInfo`].
#[macro_export]
macro_rules! list_response {
    ($visibility:vis $name:ident { $rows:ident: $view:ty }) => {
        #[derive(Debug, serde::Serialize, schemars::JsonSchema)]
        $visibility struct $name {
            #[doc = concat!("The ", stringify!($rows), " on this page of the list.")]
            $rows: Vec<$view>,
            #[serde(flatten)]
            page: $crate::PageInfo,
        }

        impl $crate::ListResponse for $name {
            type View = $view;

            fn new($rows: Vec<$view>, page: $crate::PageInfo) -> Self {
                Self { $rows, page }
            }

            fn page(&self) -> &$crate::PageInfo {
                &self.page
            }
        }
    };
}

/// Declares the query of a list that has filters: the filters, and the fields of [`PaginationQuery`]. These can't be
/// flattened: serde would read the numbers of a query string as strings.
#[macro_export]
macro_rules! list_query {
    ($visibility:vis $name:ident { $($(#[$attribute:meta])* $filter:ident: $type:ty,)* }) => {
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        $visibility struct $name {
            $($(#[$attribute])* $filter: $type,)*
            /// Maximum number of rows in one response: 1 to 100, 50 by default.
            #[schemars(range(min = 1, max = 100))]
            limit: Option<i64>,
            /// The `nextCursor` of the previous response; absent for the first page.
            #[schemars(extend("format" = "cursor"))]
            cursor: Option<String>,
        }

        impl $name {
            fn pagination(&self) -> $crate::PaginationQuery {
                $crate::PaginationQuery::new(self.limit, self.cursor.clone())
            }
        }
    };
}

impl PageInfo {
    /// Returns the pagination of a page with these rows, of a list that takes no `sort`.
    pub fn of<R: Listed>(rows: &[R], has_more: bool) -> Self {
        Self::sorted(rows, has_more, false)
    }

    /// As [`Self::of`], of a list that takes `sort`: its cursor carries the order.
    pub fn sorted<R: Listed>(rows: &[R], has_more: bool, newest_first: bool) -> Self {
        let last = rows.last().filter(|_| has_more);
        Self { next_cursor: last.map(|row| row.cursor().encode(order_of(newest_first))), has_more }
    }

    /// Truncates `rows`, which were queried with one more than `limit`, and returns the pagination.
    pub fn truncate<R: Listed>(rows: &mut Vec<R>, limit: i64, newest_first: bool) -> Self {
        let limit = usize::try_from(limit).unwrap_or_default();
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        Self::sorted(rows, has_more, newest_first)
    }
}
