//! How pages are sent: which of their bodies, or 304 to those who have it, under what headers.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use service::Rng;

use crate::sites::header_templates::{Layout, X_CACHE, X_REQUEST_ID};
use crate::sites::pages::encodings::Accepted;
use crate::sites::pages::rendered_page::{Encoded, Rendered};

/// A whole answer, in memory.
pub(crate) type Reply = Response<Full<Bytes>>;

/// How an answer was come by: `x-cache` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheStatus {
    /// From memory.
    Memory,
    /// From Postgres, just now.
    Store,
    /// From memory, though it should have been asked about again: Postgres is away.
    Past,
}

impl CacheStatus {
    /// Every way, in the order of their [`Self::as_str`]s in metrics.
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Store, Self::Past];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "hit",
            Self::Store => "miss",
            Self::Past => "stale",
        }
    }
}

/// Which of a page's bodies is sent, or would be.
pub(crate) struct SelectedBody<'a> {
    pub(crate) sent: &'a Encoded,
    /// The visitor has it: 304.
    pub(crate) had: bool,
}

impl<'a> SelectedBody<'a> {
    /// For a visitor who takes these encodings and says in `If-None-Match` what is had.
    pub(crate) fn of<'v>(
        page: &'a Rendered,
        accepted: Accepted,
        named: impl Iterator<Item = &'v [u8]>,
    ) -> Self {
        let sent = page.for_visitor(accepted);
        Self { sent, had: names(named, &sent.etag) }
    }
}

/// What decides how a page is sent.
pub(crate) struct PageResponse<'a> {
    /// What the visitor said.
    pub(crate) asked: &'a HeaderMap,
    /// Whether the site belongs to somebody; if not, search engines are kept away.
    pub(crate) claimed: bool,
    pub(crate) from: CacheStatus,
    pub(crate) request_id: HeaderValue,
}

impl PageResponse<'_> {
    /// The page, or that the visitor has it.
    pub(crate) fn page(self, page: &Rendered) -> Reply {
        let named = self.asked.get_all(header::IF_NONE_MATCH).iter().map(HeaderValue::as_bytes);
        let SelectedBody { sent, had } = SelectedBody::of(page, Accepted::by(self.asked), named);
        if had {
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
        if self.from != CacheStatus::Memory {
            headers.insert(&X_CACHE, HeaderValue::from_static(self.from.as_str()));
        }
        headers.insert(&X_REQUEST_ID, self.request_id);
        let mut reply = Response::new(Full::new(body));
        *reply.status_mut() = status;
        *reply.headers_mut() = headers;
        reply
    }
}

/// Whether `If-None-Match` names this version.
pub(crate) fn has(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    names(headers.get_all(header::IF_NONE_MATCH).iter().map(HeaderValue::as_bytes), etag)
}

/// Whether these values of `If-None-Match` name this version (weak comparison: RFC 9110, 13.1.2).
pub(crate) fn names<'a>(mut values: impl Iterator<Item = &'a [u8]>, etag: &HeaderValue) -> bool {
    let etag = etag.as_bytes();
    values.any(|value| {
        let mut named = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        value == etag || named.any(|one| one.strip_prefix(b"W/").unwrap_or(one) == etag || one == b"*")
    })
}

/// The id of a request: the one it came with if that is one word, or a new one.
pub(crate) fn request_id(asked: &HeaderMap, rng: &Rng) -> HeaderValue {
    if let Some(id) = asked.get(&X_REQUEST_ID).filter(|_| web::incoming_request_id(asked).is_some()) {
        return id.clone();
    }
    // Digits are a header value.
    let mut id = HeaderValue::from_bytes(&new_request_id(rng)).unwrap_or(HeaderValue::from_static(""));
    // Not that it is secret: HTTP/2 would put it into its table of headers likely to come again, and push out others.
    id.set_sensitive(true);
    id
}

/// An id nobody has had yet.
pub(crate) fn new_request_id(rng: &Rng) -> [u8; 32] {
    let mut digits = [0; 32];
    // Sixteen bytes are thirty-two digits.
    let _fits = hex::encode_to_slice(rng.bytes::<16>(), &mut digits);
    digits
}
