//! Files of form submissions: uploads them, binds each to one submission, and serves them for download.
//!
//! Until a file is bound, it counts against an allowance of its form and of its visitor, and it is deleted after a day.

pub(crate) mod binding;
pub(crate) mod download;
mod errors;
pub(crate) mod presign;
pub(crate) mod storage;
pub(crate) mod visitor;

pub(crate) use errors::storage_full;
