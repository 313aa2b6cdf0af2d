//! The headers of pages, laid out beforehand with gaps for what differs: as a map, of which hyper is given a copy
//! with its gaps filled, and as the same in lines, which the quick lane writes itself.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::sites::page_response::CacheStatus;

pub(crate) static X_CACHE: HeaderName = HeaderName::from_static("x-cache");
pub(crate) static X_REQUEST_ID: HeaderName = HeaderName::from_static(contract::edge::REQUEST_ID);
static X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
static ORIGIN_AGENT_CLUSTER: HeaderName = HeaderName::from_static("origin-agent-cluster");

/// Which headers an answer has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// With the page in it.
    pub(crate) page: bool,
    pub(crate) encoded: bool,
    /// Its site belongs to somebody; if not, search engines are kept away.
    pub(crate) claimed: bool,
}

struct LaidOut {
    headers: HeaderMap,
    lines: Vec<u8>,
}

static LAYOUTS: LazyLock<[LaidOut; 8]> = LazyLock::new(|| {
    std::array::from_fn(|at| {
        let headers = Layout { page: at & 1 != 0, encoded: at & 2 != 0, claimed: at & 4 != 0 }.lay_out();
        LaidOut { lines: lines(&headers), headers }
    })
});

impl Layout {
    /// All headers; those that differ from answer to answer are empty, and `x-cache` tells of a hit.
    pub(crate) fn headers(self) -> &'static HeaderMap {
        &self.laid_out().headers
    }

    /// What is the same in all such answers, each in a line of HTTP/1.1.
    pub(crate) fn lines(self) -> &'static [u8] {
        &self.laid_out().lines
    }

    fn laid_out(self) -> &'static LaidOut {
        &LAYOUTS[usize::from(self.page) | usize::from(self.encoded) << 1 | usize::from(self.claimed) << 2]
    }

    fn lay_out(self) -> HeaderMap {
        let text = HeaderValue::from_static;
        let mut headers = HeaderMap::new();
        if self.page {
            headers.insert(header::CONTENT_TYPE, text("text/html; charset=utf-8"));
        }
        if self.encoded {
            headers.insert(header::CONTENT_ENCODING, text(""));
        }
        headers.insert(header::ETAG, text(""));
        headers.insert(header::CACHE_CONTROL, text("public, max-age=0, must-revalidate"));
        headers.insert(header::VARY, text("accept-encoding"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, text("nosniff"));
        headers.insert(&ORIGIN_AGENT_CLUSTER, text("?1"));
        headers.insert(&X_CACHE, text(CacheStatus::Memory.as_str()));
        headers.insert(&X_REQUEST_ID, text(""));
        if !self.claimed {
            headers.insert(&X_ROBOTS_TAG, text("noindex"));
        }
        headers
    }
}

/// Headers each in a line of HTTP/1.1, but for those that differ from answer to answer.
pub(crate) fn lines(headers: &HeaderMap) -> Vec<u8> {
    let same = headers.iter().filter(|(name, value)| !value.is_empty() && **name != X_CACHE);
    same.flat_map(|(name, value)| [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat())
        .collect()
}
