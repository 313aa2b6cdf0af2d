//! Uploads to signed URLs, and the files of form submissions.

mod blob_storage;
pub(crate) mod form_files;
pub(crate) mod signed_uploads;
pub(crate) mod upload_urls;
