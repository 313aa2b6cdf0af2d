//! Uploads at signed URLs, and the files of forms.

pub(crate) mod form_files;
pub(crate) mod signed_uploads;
