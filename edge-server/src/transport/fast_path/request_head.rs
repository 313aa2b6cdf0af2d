//! Parses a request head, and accepts only requests that every parser reads the same way.
//!
//! The parser is hyper's own (`httparse`) with hyper's settings, so both see the head end at the same byte. A request
//! with any header about a body, the connection or another protocol is not simple: hyper parses it from its first byte.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Request, Status};

use crate::page_request::PageRequest;
use crate::tls::is_http_challenge;
use crate::transport::request_scheme::{FORWARDED_PROTO, RequestScheme};

/// Most headers that hyper accepts.
const HEADERS_MAX: usize = 100;

/// The result of parsing received bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedHead<'a> {
    /// A simple request and its length in bytes.
    Simple(SimpleRequest<'a>, usize),
    /// An incomplete head that may become a simple request.
    Partial,
    /// Anything else, which is left to hyper.
    Other,
}

/// A GET or HEAD request without a body, on a connection that stays open.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SimpleRequest<'a> {
    pub(super) is_get: bool,
    pub(super) path: &'a str,
    /// The part after `?`, or an empty string.
    pub(super) query: &'a str,
    pub(super) host: &'a str,
    pub(super) accept_encoding: Option<&'a [u8]>,
    pub(super) accept_language: Option<&'a [u8]>,
    pub(super) if_none_match: Option<&'a [u8]>,
    pub(super) request_id: Option<&'a [u8]>,
    pub(super) forwarded_proto: Option<&'a [u8]>,
}

impl SimpleRequest<'_> {
    pub(super) fn page_request(&self, scheme: RequestScheme) -> PageRequest<'_> {
        let is_secure = scheme.is_https(self.forwarded_proto);
        let Self { host, path, query, is_get, .. } = *self;
        PageRequest { host, path, query, is_get, is_secure }
    }
}

/// Parses bytes that start at the first byte of a request.
pub(super) fn parse(bytes: &[u8]) -> ParsedHead<'_> {
    if !is_get_or_head(bytes) {
        return ParsedHead::Other;
    }
    // Uninitialized, because filling it would cost as much as parsing.
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = Request::new(&mut []);
    match ParserConfig::default().parse_request_with_uninit_headers(&mut request, bytes, &mut headers) {
        Ok(Status::Complete(len)) => {
            simple_request(&request).map_or(ParsedHead::Other, |simple| ParsedHead::Simple(simple, len))
        }
        Ok(Status::Partial) => ParsedHead::Partial,
        Err(_) => ParsedHead::Other,
    }
}

fn is_get_or_head(bytes: &[u8]) -> bool {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(one, other)| one == other);
    begins(b"GET /") || begins(b"HEAD /")
}

fn simple_request<'a>(request: &Request<'_, 'a>) -> Option<SimpleRequest<'a>> {
    // HTTP/1.1: `httparse` returns the minor version.
    if request.version != Some(1) {
        return None;
    }
    let is_get = match request.method? {
        "GET" => true,
        "HEAD" => false,
        _ => return None,
    };
    let mut host = None;
    let (mut accept_encoding, mut accept_language) = (None, None);
    let (mut if_none_match, mut request_id, mut forwarded_proto) = (None, None, None);
    for Header { name, value } in &*request.headers {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            4 if is("host") => once(&mut host, value)?,
            15 if is("accept-encoding") => once(&mut accept_encoding, value)?,
            15 if is("accept-language") => once(&mut accept_language, value)?,
            13 if is("if-none-match") => once(&mut if_none_match, value)?,
            12 if is("x-request-id") => once(&mut request_id, value)?,
            17 if is(FORWARDED_PROTO) => once(&mut forwarded_proto, value)?,
            10 if is("connection") => value.eq_ignore_ascii_case(b"keep-alive").then_some(())?,
            14 if is("content-length") || is("http2-settings") => return None,
            17 if is("transfer-encoding") => return None,
            7 if is("upgrade") || is("trailer") => return None,
            6 if is("expect") => return None,
            5 if is("range") => return None,
            2 if is("te") => return None,
            _ => {}
        }
    }
    let host = host.filter(|host| !host.is_empty() && host.iter().all(u8::is_ascii_graphic))?;
    let (path, query) = split(request.path?)?;
    if is_http_challenge(path) {
        return None;
    }
    Some(SimpleRequest {
        is_get,
        path,
        query,
        host: std::str::from_utf8(host).ok()?,
        accept_encoding,
        accept_language,
        if_none_match,
        request_id,
        forwarded_proto,
    })
}

/// Sets a header that may appear once; `None` if it was set before.
fn once<'a>(header: &mut Option<&'a [u8]>, value: &'a [u8]) -> Option<()> {
    header.replace(value).is_none().then_some(())
}

/// Splits a target into path and query; `None` if it has a character that some parser might read differently.
fn split(target: &str) -> Option<(&str, &str)> {
    let is_unambiguous =
        |byte: &u8| matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=b'Z' | b'_' | b'a'..=b'z' | b'~');
    let parts = target.split_once('?').unwrap_or((target, ""));
    target.as_bytes().iter().all(is_unambiguous).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMPLE: &str = "GET /a/b?c=d HTTP/1.1\r\nHost: a.test:8080\r\n\r\n";

    fn with(line: &str) -> String {
        format!("GET / HTTP/1.1\r\nHost: a.test\r\n{line}\r\n\r\n")
    }

    #[test]
    fn parses_a_simple_request_up_to_its_end() {
        let two = [SIMPLE, "GET /next HTTP/1.1\r\n"].concat();
        let ParsedHead::Simple(simple, len) = parse(two.as_bytes()) else { panic!("not simple") };
        assert_eq!((simple.path, simple.query, simple.host), ("/a/b", "c=d", "a.test:8080"));
        assert_eq!((simple.is_get, len), (true, SIMPLE.len()));
    }

    #[test]
    fn header_names_are_case_insensitive() {
        let lines = "aCCEPT-eNCODING:gzip\r\naccept-Language: de \r\nIF-NONE-MATCH: \"x\" \r\nX-Request-ID: 12345678\r\nConnection: Keep-Alive";
        let request = with(lines).replace("GET", "HEAD");
        let ParsedHead::Simple(simple, _) = parse(request.as_bytes()) else { panic!("not simple") };
        assert!(!simple.is_get);
        let values =
            [simple.accept_encoding, simple.accept_language, simple.if_none_match, simple.request_id];
        assert_eq!(values, [&b"gzip"[..], b"de", b"\"x\"", b"12345678"].map(Some));
    }

    #[test]
    fn any_prefix_of_a_simple_request_is_partial() {
        for end in 0..SIMPLE.len() {
            assert_eq!(parse(&SIMPLE.as_bytes()[..end]), ParsedHead::Partial, "{:?}", &SIMPLE[..end]);
        }
    }

    #[test]
    fn a_request_with_headers_about_a_body_or_the_connection_is_not_simple() {
        for line in [
            "Content-Length: 0",
            "content-length: 5",
            "Transfer-Encoding: chunked",
            "TRANSFER-ENCODING: identity",
            "Expect: 100-continue",
            "Upgrade: h2c",
            "HTTP2-Settings: AAAA",
            "TE: trailers",
            "Trailer: x",
            "Range: bytes=0-1",
            "Connection: close",
            "Connection: keep-alive, close",
            "Connection:",
            "Host: a.test",
            "Accept-Encoding: gzip\r\naccept-encoding: br",
            "Accept-Language: de\r\naccept-language: fr",
            "If-None-Match: *\r\nIf-None-Match: *",
            "X-Request-Id: 12345678\r\nX-Request-Id: 12345678",
        ] {
            assert_eq!(parse(with(line).as_bytes()), ParsedHead::Other, "{line}");
        }
    }

    #[test]
    fn an_unusual_request_is_not_simple() {
        for request in [
            "\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "get / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost:\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: \u{e4}.test\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET /#x HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET /.well-known/acme-challenge/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET /?\" HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET /\u{e4} HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET /  HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a.test\r\n\r\n",
            "GET / HTTP/1.1\r\n Host: a.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nX: a\r\n b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nX: a\0b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nX: a\rb\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            assert_eq!(parse(request.as_bytes()), ParsedHead::Other, "{request:?}");
        }
        let many: String = (0..HEADERS_MAX).map(|n| format!("X-{n}: 1\r\n")).collect();
        assert_eq!(parse(with(many.trim_end()).as_bytes()), ParsedHead::Other);
    }
}
