//! What stands at the beginning of the bytes that came: a request so plain that no two readers could differ about it,
//! or something for hyper.
//!
//! The reader is hyper's own (`httparse`), with hyper's settings, so that both see the same head end at the same
//! byte. Beyond that nothing is decided here: whatever says anything of a body, of the connection, or of another
//! protocol is not plain, and hyper reads it from its first byte.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Request, Status};

use crate::sites::page_lookup::PageRequest;

/// So many headers hyper takes.
const HEADERS_MAX: usize = 100;

/// What stands there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head<'a> {
    /// A plain request of so many bytes.
    Plain(Plain<'a>, usize),
    /// What may become one.
    Beginning,
    /// Anything else.
    Other,
}

/// A GET or HEAD without a body, over a connection that stays.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain<'a> {
    pub(super) is_get: bool,
    pub(super) path: &'a str,
    /// What stands behind the path's `?`.
    pub(super) query: &'a str,
    pub(super) host: &'a str,
    pub(super) accept_encoding: Option<&'a [u8]>,
    pub(super) accept_language: Option<&'a [u8]>,
    pub(super) if_none_match: Option<&'a [u8]>,
    pub(super) request_id: Option<&'a [u8]>,
}

impl Plain<'_> {
    pub(super) fn wanted(&self) -> PageRequest<'_> {
        PageRequest { host: self.host, path: self.path, query: self.query, is_get: self.is_get }
    }
}

/// Looks at what came, from the first byte of a request on.
pub(super) fn read(bytes: &[u8]) -> Head<'_> {
    if !begins_plainly(bytes) {
        return Head::Other;
    }
    // Not filled with anything before the reader fills it: that would cost as much as reading.
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = Request::new(&mut []);
    match ParserConfig::default().parse_request_with_uninit_headers(&mut request, bytes, &mut headers) {
        Ok(Status::Complete(len)) => plain(&request).map_or(Head::Other, |plain| Head::Plain(plain, len)),
        Ok(Status::Partial) => Head::Beginning,
        Err(_) => Head::Other,
    }
}

fn begins_plainly(bytes: &[u8]) -> bool {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(one, other)| one == other);
    begins(b"GET /") || begins(b"HEAD /")
}

fn plain<'a>(request: &Request<'_, 'a>) -> Option<Plain<'a>> {
    // HTTP/1.1: `httparse` gives the last digit.
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
    let (mut if_none_match, mut request_id) = (None, None);
    for Header { name, value } in &*request.headers {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            4 if is("host") => once(&mut host, value)?,
            15 if is("accept-encoding") => once(&mut accept_encoding, value)?,
            15 if is("accept-language") => once(&mut accept_language, value)?,
            13 if is("if-none-match") => once(&mut if_none_match, value)?,
            12 if is("x-request-id") => once(&mut request_id, value)?,
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
    Some(Plain {
        is_get,
        path,
        query,
        host: std::str::from_utf8(host).ok()?,
        accept_encoding,
        accept_language,
        if_none_match,
        request_id,
    })
}

/// Takes the value of a header that may stand there once.
fn once<'a>(place: &mut Option<&'a [u8]>, value: &'a [u8]) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Path and query of a target that every reader takes for the same: of letters and signs that need no thought.
fn split(target: &str) -> Option<(&str, &str)> {
    let is_plain =
        |byte: &u8| matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=b'Z' | b'_' | b'a'..=b'z' | b'~');
    let parts = target.split_once('?').unwrap_or((target, ""));
    target.as_bytes().iter().all(is_plain).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMPLE: &str = "GET /a/b?c=d HTTP/1.1\r\nHost: a.test:8080\r\n\r\n";

    fn with(line: &str) -> String {
        format!("GET / HTTP/1.1\r\nHost: a.test\r\n{line}\r\n\r\n")
    }

    #[test]
    fn a_plain_request_is_read_to_its_end_and_no_further() {
        let two = [SIMPLE, "GET /next HTTP/1.1\r\n"].concat();
        let Head::Plain(plain, len) = read(two.as_bytes()) else { panic!("not plain") };
        assert_eq!((plain.path, plain.query, plain.host), ("/a/b", "c=d", "a.test:8080"));
        assert_eq!((plain.is_get, len), (true, SIMPLE.len()));
    }

    #[test]
    fn what_a_page_depends_on_is_read_whatever_the_case_of_its_name() {
        let lines = "aCCEPT-eNCODING:gzip\r\naccept-Language: de \r\nIF-NONE-MATCH: \"x\" \r\nX-Request-ID: 12345678\r\nConnection: Keep-Alive";
        let request = with(lines).replace("GET", "HEAD");
        let Head::Plain(plain, _) = read(request.as_bytes()) else { panic!("not plain") };
        assert!(!plain.is_get);
        let read = [plain.accept_encoding, plain.accept_language, plain.if_none_match, plain.request_id];
        assert_eq!(read, [&b"gzip"[..], b"de", b"\"x\"", b"12345678"].map(Some));
    }

    #[test]
    fn any_beginning_of_a_plain_request_may_become_one() {
        for end in 0..SIMPLE.len() {
            assert_eq!(read(&SIMPLE.as_bytes()[..end]), Head::Beginning, "{:?}", &SIMPLE[..end]);
        }
    }

    #[test]
    fn what_speaks_of_a_body_or_of_the_connection_is_not_plain() {
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
            assert_eq!(read(with(line).as_bytes()), Head::Other, "{line}");
        }
    }

    #[test]
    fn what_is_not_written_plainly_is_not_plain() {
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
            assert_eq!(read(request.as_bytes()), Head::Other, "{request:?}");
        }
        let many: String = (0..HEADERS_MAX).map(|n| format!("X-{n}: 1\r\n")).collect();
        assert_eq!(read(with(many.trim_end()).as_bytes()), Head::Other);
    }
}
