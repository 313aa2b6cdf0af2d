//! The address of the page of a webhook.

use percent_encoding::utf8_percent_encode;

use crate::url_query::PATH_SEGMENT;

/// Returns the path of the page.
pub(super) fn page_path(id: &str) -> String {
    format!("/console/webhooks/{}", utf8_percent_encode(id, PATH_SEGMENT))
}
