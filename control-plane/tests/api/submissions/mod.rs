//! Submissions: owner writes, files, lists, exports and erasure.

mod erasure;
mod exports;
mod files;
mod list;
mod writes;
