//! How pages are sent: headers, and 304 for those who have the page.
//!
//! The headers are laid out beforehand, with gaps for what differs; a reply is a copy with its gaps filled.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use service::Rng;

use crate::encodings::Accepted;
use crate::rendered::Rendered;

/// A whole answer, in memory.
pub(crate) type Reply = Response<Full<Bytes>>;

static X_CACHE: HeaderName = HeaderName::from_static("x-cache");
static X_REQUEST_ID: HeaderName = HeaderName::from_static(contract::edge::REQUEST_ID);
static X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
static ORIGIN_AGENT_CLUSTER: HeaderName = HeaderName::from_static("origin-agent-cluster");

/// How an answer was come by: `x-cache` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// From memory.
    Memory,
    /// From Postgres, just now.
    Store,
    /// From memory, though it should have been asked about again: Postgres is away.
    Past,
}

impl Source {
    /// Every way, in the order of their [`Self::word`]s in metrics.
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Store, Self::Past];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Memory => "hit",
            Self::Store => "miss",
            Self::Past => "stale",
        }
    }
}

/// What decides how a page is sent.
pub(crate) struct Sending<'a> {
    /// What the visitor said.
    pub(crate) asked: &'a HeaderMap,
    /// Whether the site belongs to somebody; if not, search engines are kept away.
    pub(crate) claimed: bool,
    pub(crate) from: Source,
    pub(crate) request_id: HeaderValue,
}

impl Sending<'_> {
    /// The page, or that the visitor has it.
    pub(crate) fn page(self, page: &Rendered) -> Reply {
        let sent = page.for_visitor(Accepted::by(self.asked));
        if has(self.asked, &sent.etag) {
            let layout = Layout { page: false, ..self.layout() };
            return self.reply(StatusCode::NOT_MODIFIED, layout, |headers| {
                headers.insert(header::ETAG, sent.etag.clone());
                Bytes::new()
            });
        }
        let layout = Layout { encoded: sent.coding.is_some(), ..self.layout() };
        self.reply(StatusCode::OK, layout, |headers| {
            headers.insert(header::ETAG, sent.etag.clone());
            if let Some(coding) = &sent.coding {
                headers.insert(header::CONTENT_ENCODING, coding.clone());
            }
            sent.body.clone()
        })
    }

    /// The site's own page for what isn't there. It can't be "had": 304 would mean that there is a page.
    pub(crate) fn not_found(self, page: &Rendered) -> Reply {
        let sent = page.for_visitor(Accepted::by(self.asked));
        let layout = Layout { encoded: sent.coding.is_some(), ..self.layout() };
        self.reply(StatusCode::NOT_FOUND, layout, |headers| {
            headers.remove(header::ETAG);
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            if let Some(coding) = &sent.coding {
                headers.insert(header::CONTENT_ENCODING, coding.clone());
            }
            sent.body.clone()
        })
    }

    fn layout(&self) -> Layout {
        Layout { page: true, encoded: false, claimed: self.claimed }
    }

    fn reply(self, status: StatusCode, layout: Layout, fill: impl FnOnce(&mut HeaderMap) -> Bytes) -> Reply {
        let mut headers = layout.headers().clone();
        let body = fill(&mut headers);
        if self.from != Source::Memory {
            headers.insert(&X_CACHE, HeaderValue::from_static(self.from.word()));
        }
        headers.insert(&X_REQUEST_ID, self.request_id);
        let mut reply = Response::new(Full::new(body));
        *reply.status_mut() = status;
        *reply.headers_mut() = headers;
        reply
    }
}

/// Which headers an answer has.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// With the page in it.
    page: bool,
    encoded: bool,
    claimed: bool,
}

static LAYOUTS: LazyLock<[HeaderMap; 8]> = LazyLock::new(|| {
    std::array::from_fn(|at| {
        Layout { page: at & 1 != 0, encoded: at & 2 != 0, claimed: at & 4 != 0 }.lay_out()
    })
});

impl Layout {
    fn headers(self) -> &'static HeaderMap {
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
        headers.insert(&X_CACHE, text(Source::Memory.word()));
        headers.insert(&X_REQUEST_ID, text(""));
        if !self.claimed {
            headers.insert(&X_ROBOTS_TAG, text("noindex"));
        }
        headers
    }
}

/// Whether `If-None-Match` names this version (weak comparison: RFC 9110, 13.1.2).
pub(crate) fn has(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let mut values = headers.get_all(header::IF_NONE_MATCH).iter().map(HeaderValue::as_bytes);
    let etag = etag.as_bytes();
    values.any(|value| {
        let mut named = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        value == etag || named.any(|one| one.strip_prefix(b"W/").unwrap_or(one) == etag || one == b"*")
    })
}

/// The id of a request: the one it came with if that is one word, or a new one.
pub(crate) fn request_id(asked: &HeaderMap, rng: &Rng) -> HeaderValue {
    if let Some(id) = asked.get(&X_REQUEST_ID).filter(|_| web::kept_request_id(asked).is_some()) {
        return id.clone();
    }
    let mut digits = [0; 32];
    // Sixteen bytes are thirty-two digits, and digits are a header value.
    let _fits = hex::encode_to_slice(rng.bytes::<16>(), &mut digits);
    let mut id = HeaderValue::from_bytes(&digits).unwrap_or(HeaderValue::from_static(""));
    // Not that it is secret: HTTP/2 would put it into its table of headers likely to come again, and push out others.
    id.set_sensitive(true);
    id
}
