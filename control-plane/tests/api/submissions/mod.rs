//! Submissions: owner writes, files, lists, exports and erasure.

mod effects;
mod erasure;
mod exports;
mod files;
pub(crate) mod list;
mod one;
mod results;
mod writes;
