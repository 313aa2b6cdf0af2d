//! Files that visitors submit with a form.

pub(crate) mod download;
pub(crate) mod presign;
pub(crate) mod storage;
