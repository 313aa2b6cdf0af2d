//! Submissions: the answers of visitors, stored with all their effects.
//!
//! Edge and control plane insert them with the same function. Every statement that changes a form's count or its unique
//! values holds the form's lock until the end of its transaction, as edits of the form do
//! ([`crate::forms::lock_form`]).

mod delete;
mod effect_log;
mod effects;
mod export;
mod group_insert;
mod insert;
mod list;
mod read;
mod results;
mod search;
mod spam;
mod status_counts;
mod unique;
mod update;

pub use crate::write_context::WriteContext;
pub use delete::{Erasure, delete_submission, delete_submissions_by_email};
pub use effect_log::{SubmissionEntry, SubmissionMail, SubmissionRun, find_entry, find_mail, list_runs};
pub use export::{CsvChunk, csv_column_names, export_submissions};
pub use group_insert::{BatchSubmission, StoredBatch, insert_batch};
pub use insert::{NewSubmission, SubmissionOutcome, insert_submission};
pub use list::{SubmissionFilter, list_submissions};
pub(crate) use read::SubmissionRow;
pub use read::{Submission, find_id_by_external_id, find_submission};
pub use results::{count_histograms, get_results, list_number_summaries};
pub use spam::{delete_old_spam, has_room_for_files};
pub use status_counts::{StatusCounts, count_by_status};
pub use unique::{resolve_duplicates, update_unique_digests};
pub use update::{StatusLimits, UpdateOutcome, update_count, update_payload, update_status};
