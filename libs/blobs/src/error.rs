//! The error of a blob operation.

use object_store::Error as StoreError;

/// A failed blob operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object store refused the operation or is unreachable.
    #[error("blobs: {0}")]
    Store(#[from] StoreError),
    /// The setting is invalid.
    #[error("blobs.url: {0}")]
    Setting(String),
    /// The folder is unusable.
    #[error("blobs folder: {0}")]
    Folder(#[from] std::io::Error),
}

impl Error {
    /// Returns whether the blob does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Store(StoreError::NotFound { .. }))
    }
}

impl domain::Transient for Error {
    fn is_transient(&self) -> bool {
        // The client reports transport errors as `Generic`.
        matches!(self, Self::Store(StoreError::Generic { .. }) | Self::Folder(_))
    }
}
