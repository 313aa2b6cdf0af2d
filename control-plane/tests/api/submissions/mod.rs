//! Submissions: owner writes, files, lists, exports and erasure.

mod erasure;
mod exports;
mod files;
pub(crate) mod list;
mod one;
mod results;
mod writes;
