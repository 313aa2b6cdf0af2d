//! Blob names: account and digest, and their paths in the store.

use object_store::path::Path;
use uuid::Uuid;

/// The name of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    pub account_id: Uuid,
    /// The digest of its bytes.
    pub sha256: [u8; 32],
}

impl Name {
    pub(crate) fn path(&self) -> Path {
        stored(self.account_id).join(hex::encode(self.sha256))
    }
}

/// The prefix of an account's stored blobs. The folder is named `kept` in existing stores.
pub(crate) fn stored(account_id: Uuid) -> Path {
    Path::from("kept").join(account_id.to_string())
}

/// The prefix of all uploads in progress.
pub(crate) fn incoming() -> Path {
    Path::from("incoming")
}

/// The prefix of an account's uploads in progress.
pub(crate) fn incoming_of(account_id: Uuid) -> Path {
    incoming().join(account_id.to_string())
}
