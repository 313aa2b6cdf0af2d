//! A posted form of a page: urlencoded fields become the JSON of the operation, as its schema says.

mod field_path;
mod schema;
mod submission;

pub(crate) use submission::FormSubmission;
