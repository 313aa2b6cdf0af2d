//! The addresses of the pages of a form's submissions.

use percent_encoding::utf8_percent_encode;

use crate::url_query::PATH_SEGMENT;

/// Returns the path of a form's submissions.
pub(super) fn form_path(form_id: &str) -> String {
    format!("/console/forms/{}", utf8_percent_encode(form_id, PATH_SEGMENT))
}

/// Returns the path of a submission.
pub(super) fn submission_path(form_id: &str, id: &str) -> String {
    format!("{}/submissions/{}", form_path(form_id), utf8_percent_encode(id, PATH_SEGMENT))
}
