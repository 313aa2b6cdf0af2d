//! A GET or HEAD request, reduced to what decides which page it is for.

use http::{Method, Request};

use crate::sites::classify_host::raw_host;
use crate::tls::is_http_challenge;

/// A request for a page, as read by hyper or by the fast path.
pub(crate) struct PageRequest<'a> {
    /// The host as the client wrote it, with case and port.
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    /// The part after `?`, or an empty string.
    pub(crate) query: &'a str,
    /// GET rather than HEAD: the visitor sees the page, so it counts as a view.
    pub(crate) is_get: bool,
    /// Over https. Only then a response has `Strict-Transport-Security` (RFC 6797, 7.2).
    pub(crate) is_secure: bool,
}

impl<'a> PageRequest<'a> {
    /// Reads a request parsed by hyper; `None` for other methods, for an ambiguous host, and for
    /// the challenge of a certificate authority.
    pub(crate) fn new<B>(request: &'a Request<B>, is_secure: bool) -> Option<Self> {
        let (method, uri) = (request.method(), request.uri());
        let is_get = *method == Method::GET;
        if !is_get && *method != Method::HEAD {
            return None;
        }
        if is_http_challenge(uri.path()) {
            return None;
        }
        let host = raw_host(request.version(), request.headers(), uri)?;
        Some(Self { host, path: uri.path(), query: uri.query().unwrap_or_default(), is_get, is_secure })
    }
}
