//! Header templates, built once: a map that hyper's responses are cloned from, and the same headers as HTTP/1.1 lines for
//! the fast path.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::cache_status::CacheStatus;
use crate::etag;
use crate::request_id::X_REQUEST_ID;

pub(crate) static X_CACHE: HeaderName = HeaderName::from_static("x-cache");
static X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
static ORIGIN_AGENT_CLUSTER: HeaderName = HeaderName::from_static("origin-agent-cluster");

/// `X-Robots-Tag` of previews and of sites of unclaimed accounts.
pub(crate) const NOINDEX: &str = "noindex";

/// The constant headers of a kind of response.
#[derive(Debug)]
pub(crate) struct HeaderTemplate {
    /// All headers. Those that vary are empty, and `x-cache` is a hit.
    pub(crate) headers: HeaderMap,
    /// The constant headers, one line each.
    pub(crate) lines: Vec<u8>,
}

impl HeaderTemplate {
    pub(crate) fn new(headers: HeaderMap) -> Self {
        let constant = headers.iter().filter(|(name, value)| !value.is_empty() && **name != X_CACHE);
        let lines = constant
            .flat_map(|(name, value)| [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat())
            .collect();
        Self { headers, lines }
    }

    /// Returns the template for a site's page. Without `with_body` it is one for a 304. The pages of unclaimed accounts are
    /// not for search engines.
    pub(crate) fn of_page(with_body: bool, is_encoded: bool, is_claimed: bool) -> &'static Self {
        &PAGE_TEMPLATES[usize::from(with_body) | usize::from(is_encoded) << 1 | usize::from(is_claimed) << 2]
    }
}

static PAGE_TEMPLATES: LazyLock<[HeaderTemplate; 8]> = LazyLock::new(|| {
    std::array::from_fn(|at| HeaderTemplate::new(page_headers(at & 1 != 0, at & 2 != 0, at & 4 != 0)))
});

/// Returns the headers of a page. Those that vary are empty.
pub(crate) fn page_headers(with_body: bool, is_encoded: bool, is_claimed: bool) -> HeaderMap {
    let text = HeaderValue::from_static;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, text("text/html; charset=utf-8"));
    if is_encoded {
        headers.insert(header::CONTENT_ENCODING, text(""));
    }
    headers.insert(header::ETAG, text(""));
    headers.insert(header::CACHE_CONTROL, text("public, max-age=0, must-revalidate"));
    headers.insert(header::VARY, text("accept-encoding"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, text("nosniff"));
    headers.insert(&ORIGIN_AGENT_CLUSTER, text("?1"));
    headers.insert(&X_CACHE, text(CacheStatus::Hit.as_str()));
    headers.insert(&X_REQUEST_ID, text(""));
    if !is_claimed {
        headers.insert(&X_ROBOTS_TAG, text(NOINDEX));
    }
    if with_body { headers } else { etag::not_modified_headers(headers) }
}
