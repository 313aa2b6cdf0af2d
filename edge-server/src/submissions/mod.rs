//! Submissions of forms: read, checked, and stored.

pub(crate) mod admission;
mod body;
pub(crate) mod group_commit;
pub(crate) mod handler;
mod idempotency;
mod keyed_semaphore;
mod multipart;
mod transaction;
