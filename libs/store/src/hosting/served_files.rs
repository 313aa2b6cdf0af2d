//! Files as the edge serves them: assets, deployed files and files of submissions.

use uuid::Uuid;

use crate::{Error, blobs};

/// What the edge must know of a file before it shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedFile {
    /// Whose.
    pub account_id: Uuid,
    /// The digest of its bytes.
    pub sha256: [u8; 32],
    /// How many they are.
    pub size_bytes: i64,
    /// What they are.
    pub content_type: String,
    /// What it is called.
    pub filename: String,
    /// Whether the operator has suspended its account.
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
