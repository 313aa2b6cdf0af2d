//! What can go wrong with bytes, as far as callers treat it differently.

use object_store::Error as StoreError;

/// Bytes could not be kept, given or forgotten.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store refused, or can't be reached.
    #[error("blobs: {0}")]
    Store(#[from] StoreError),
    /// A setting can't be used.
    #[error("blobs.url: {0}")]
    Setting(String),
    /// The folder can't be used.
    #[error("blobs, the folder: {0}")]
    Folder(#[from] std::io::Error),
}

impl Error {
    /// Whether there is no such blob.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Store(StoreError::NotFound { .. }))
    }
}

impl domain::Fault for Error {
    fn is_unavailable(&self) -> bool {
        // What the client has not named otherwise went wrong on the way.
        matches!(self, Self::Store(StoreError::Generic { .. }) | Self::Folder(_))
    }
}
