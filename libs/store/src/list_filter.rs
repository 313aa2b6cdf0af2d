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
