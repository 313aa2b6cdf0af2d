//! Files of a deployed site, served on its host at their own paths, so that modules, chunks and requests by path resolve.
//! Scripts among them may run: the origin is the site's own.

use std::sync::Arc;

use axum::response::Response;
use domain::media;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use store::subdomains::Site;

use super::file_body::FileBodyCache;
use crate::sites::answers::address_headers::AddressHeaders;
use crate::sites::answers::answer::SiteFile;
use crate::sites::header_templates::NOINDEX;

const REVALIDATE: &str = "public, max-age=0, must-revalidate";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// Returns the response to a GET or HEAD request with a file, with the status 200 or 404. `set` are the headers that the
/// site sets.
pub(crate) async fn respond(
    bodies: &FileBodyCache,
    site: &Site,
    file: &SiteFile,
    status: u16,
    set: Option<Arc<AddressHeaders>>,
    request: &Parts,
) -> Response {
    let mut headers = response_headers(file, site);
    if let Some(set) = set {
        set.apply_to(&mut headers);
    }
    if status == 404 {
        return bodies.not_found(&file.found.file, request, headers).await;
    }
    bodies.respond(&file.found.file, request, headers).await
}

fn response_headers(file: &SiteFile, site: &Site) -> HeaderMap {
    let is_content_hashed = file.is_content_hashed;
    let file = &file.found.file;
    let mut headers = HeaderMap::with_capacity(12);
    let octets = HeaderValue::from_static("application/octet-stream");
    let content_type = HeaderValue::from_str(&media::with_charset(&file.content_type)).unwrap_or(octets);
    headers.insert(header::CONTENT_TYPE, content_type);
    let lifetime = if is_content_hashed { IMMUTABLE } else { REVALIDATE };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(lifetime));
    if is_shared(&file.content_type) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    if !site.claimed {
        headers.insert("x-robots-tag", HeaderValue::from_static(NOINDEX));
    }
    headers
}

/// Returns whether pages of any origin may load the file. A sandboxed page has no origin, and must still load its styles,
/// scripts, fonts and images.
fn is_shared(essence: &str) -> bool {
    media::is_image_or_font(essence) || matches!(essence, "text/css" | "text/javascript" | "application/wasm")
}
