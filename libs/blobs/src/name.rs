//! How a blob is called: by whose it is and by what is in it.

use object_store::path::Path;
use uuid::Uuid;

/// A blob's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// Whose it is.
    pub account_id: Uuid,
    /// SHA-256 of its bytes.
    pub sha256: [u8; 32],
}

impl Name {
    /// Where it lies in the store.
    pub(crate) fn path(&self) -> Path {
        kept(self.account_id).join(hex::encode(self.sha256))
    }
}

/// Everything an account keeps.
pub(crate) fn kept(account_id: Uuid) -> Path {
    Path::from("kept").join(account_id.to_string())
}

/// Everything on its way in, of everybody.
pub(crate) fn incoming() -> Path {
    Path::from("incoming")
}

/// Everything of an account on its way in.
pub(crate) fn incoming_of(account_id: Uuid) -> Path {
    incoming().join(account_id.to_string())
}
