//! Listings in parts: what a caller asks for, and how an answer says that there is more.

use domain::{Cursor, FieldError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Problem;

const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 100;

/// The query of every listing.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaginationQuery {
    /// Most rows of one answer: 1 to 100, 50 by default.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Where to go on: the `nextCursor` of the answer before.
    #[schemars(extend("format" = "cursor"))]
    cursor: Option<String>,
}

impl PaginationQuery {
    /// The query of a listing that asks for more than these two.
    pub fn new(limit: Option<i64>, cursor: Option<String>) -> Self {
        Self { limit, cursor }
    }

    /// How many rows to answer, and after which.
    ///
    /// # Errors
    /// A validation problem for a limit out of range or a cursor we never gave.
    pub fn read(&self) -> Result<(i64, Option<Cursor>), Problem> {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            let message = format!("limit must be 1 to {MAX_LIMIT}");
            return Err(Problem::validation(vec![FieldError::new("limit", "range", message)]));
        }
        let Some(word) = &self.cursor else { return Ok((limit, None)) };
        let cursor = Cursor::parse(word).ok_or_else(|| {
            let message = "cursor must be a `nextCursor` as an earlier answer gave it";
            Problem::validation(vec![FieldError::new("cursor", "cursor", message)])
        })?;
        Ok((limit, Some(cursor)))
    }
}

/// How a listing goes on, beside the noun that holds its rows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageInfo {
    /// Give this as `cursor` to go on; null at the end.
    pub next_cursor: Option<String>,
    /// Whether there is more.
    pub has_more: bool,
}

impl PageInfo {
    /// Cuts `rows`, which were asked for with one more than `limit`, to `limit`, and says how to go on.
    pub fn truncate<R>(rows: &mut Vec<R>, limit: i64, cursor: impl Fn(&R) -> Cursor) -> Self {
        let limit = usize::try_from(limit).unwrap_or_default();
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next_cursor = rows.last().filter(|_| has_more).map(|row| cursor(row).encode());
        Self { next_cursor, has_more }
    }
}
