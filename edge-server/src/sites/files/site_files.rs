//! Files of a deployed site, served on its host at their own paths, so that modules, chunks and requests by path resolve.
//! Scripts among them may run: the origin is the site's own.

use axum::response::Response;
use http::HeaderMap;
use http::request::Parts;

use super::file_body::FileBodyCache;
use super::site_file::SiteFile;
use crate::sites::answers::address_headers::AddressHeaders;

/// Returns the response to a GET or HEAD request with a file that is not kept in memory: the whole of it or a range, or a 304.
/// `set` are the headers that the site sets.
pub(crate) async fn respond(
    bodies: &FileBodyCache,
    file: &SiteFile,
    set: Option<&AddressHeaders>,
    request: &Parts,
) -> Response {
    bodies.respond_plain(&file.found.file, request, headers(file, set)).await
}

/// Returns a 404 with a file.
pub(crate) async fn respond_not_found(
    bodies: &FileBodyCache,
    file: &SiteFile,
    set: Option<&AddressHeaders>,
    request: &Parts,
) -> Response {
    bodies.not_found(&file.found.file, request, headers(file, set)).await
}

fn headers(file: &SiteFile, set: Option<&AddressHeaders>) -> HeaderMap {
    let mut headers = file.templates.described.clone();
    if let Some(set) = set {
        set.apply_to(&mut headers);
    }
    headers
}
