//! Files of a deployed site, served on its host at their own paths, so that modules, chunks and requests by path resolve.
//! Scripts among them may run: the origin is the site's own.

use std::sync::Arc;

use axum::response::Response;
use http::request::Parts;

use super::file_body::FileBodyCache;
use super::site_file::SiteFile;
use crate::sites::answers::address_headers::AddressHeaders;

/// Returns the response to a GET or HEAD request with a file, with the status 200 or 404. `set` are the headers that the
/// site sets.
pub(crate) async fn respond(
    bodies: &FileBodyCache,
    file: &SiteFile,
    status: u16,
    set: Option<Arc<AddressHeaders>>,
    request: &Parts,
) -> Response {
    let mut headers = file.templates.described.clone();
    if let Some(set) = set {
        set.apply_to(&mut headers);
    }
    if status == 404 {
        return bodies.not_found(&file.found.file, request, headers).await;
    }
    bodies.respond(&file.found.file, request, headers).await
}
