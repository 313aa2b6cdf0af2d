//! Submissions: reads and checks them, and stores them in a group commit or in their own transaction.

pub(crate) mod admission;
mod body;
pub(crate) mod confirmation;
mod deadline;
pub(crate) mod group_commit;
pub(crate) mod handler;
mod idempotency;
mod multipart;
mod pending;
pub(crate) mod rate_limit;
mod responses;
mod spam;
mod submitted_body;
mod transaction;
