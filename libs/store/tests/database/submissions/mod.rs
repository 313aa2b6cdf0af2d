//! Submissions, stored one by one and in batches.

mod group_insert;
mod single_insert;
