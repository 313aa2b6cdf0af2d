//! Files as the edge serves them: assets, deployed files and files of submissions.

use uuid::Uuid;

use crate::{Error, blobs};

/// A file with the properties that the edge needs to serve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedFile {
    pub account_id: Uuid,
    pub sha256: [u8; 32],
    pub size_bytes: i64,
    pub content_type: String,
    pub filename: String,
    /// Whether its account is suspended.
    pub is_suspended: bool,
}

/// A row that the queries for served files select.
pub(crate) struct ServedFileRow {
    pub(crate) account_id: Uuid,
    pub(crate) sha256: Vec<u8>,
    pub(crate) size_bytes: i64,
    pub(crate) content_type: String,
    pub(crate) filename: String,
    pub(crate) is_suspended: bool,
}

impl TryFrom<ServedFileRow> for ServedFile {
    type Error = Error;

    fn try_from(row: ServedFileRow) -> Result<Self, Error> {
        let sha256 = blobs::digest(&row.sha256)?;
        let ServedFileRow { account_id, size_bytes, content_type, filename, is_suspended, .. } = row;
        Ok(Self { account_id, sha256, size_bytes, content_type, filename, is_suspended })
    }
}
