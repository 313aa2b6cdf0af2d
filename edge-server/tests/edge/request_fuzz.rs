//! Random byte streams close to HTTP: valid requests, concatenated, corrupted and split into pieces.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::form_differential;

/// The bytes sent over one connection.
#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) bytes: Vec<u8>,
    /// The offsets where a new piece begins.
    pub(crate) cuts: Vec<usize>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" cut at {:?}", self.bytes.escape_ascii(), self.cuts)
    }
}

impl Stream {
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.cuts.iter().copied().chain([self.bytes.len()]);
        ends.scan(0, |begin, end| {
            let piece = &self.bytes[*begin..end.max(*begin)];
            *begin = end.max(*begin);
            Some(piece)
        })
    }
}

/// The bytes followed by a `Connection: close` request.
pub(crate) fn with_closing_request(bytes: &[u8]) -> Vec<u8> {
    let last = "GET /long/one HTTP/1.1\r\nHost: quiet-otter.localhost\r\nConnection: close\r\n\r\n";
    [bytes, last.as_bytes()].concat()
}

/// Returns `count` streams, the same ones on every run.
pub(crate) fn random_streams(count: usize) -> Vec<Stream> {
    let mut runner = TestRunner::deterministic();
    let all = streams();
    (0..count).map(|_| all.new_tree(&mut runner).unwrap().current()).collect()
}

/// Usually `first`, sometimes one of `others`.
fn mostly(first: &'static str, others: &[&'static str]) -> impl Strategy<Value = &'static str> + use<> {
    prop_oneof![12 => Just(first), 1 => select(others.to_vec())]
}

fn line() -> impl Strategy<Value = &'static str> {
    let harmless = select(vec![
        "Accept-Encoding: gzip",
        "accept-encoding: identity",
        "Accept-Language: de, en;q=0.5",
        "accept-language: fr",
        "If-None-Match: \"x\"",
        "If-None-Match: *",
        "X-Request-Id: 0123456789abc",
        "Connection: keep-alive",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64)",
        "Cookie: a=b; c=d",
        "Sec-Fetch-Mode: navigate",
        "Upgrade-Insecure-Requests: 1",
    ]);
    let other = select(vec![
        "Content-Length: 0",
        "Content-Length: 4",
        "Content-Length: 4, 4",
        "Content-Length: -1",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "transfer-encoding:chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: \u{b}chunked",
        "Connection: close",
        "Connection: keep-alive, te",
        "Host: quiet-otter.localhost",
        "Host: absent.localhost",
        "Expect: 100-continue",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
        "TE: trailers",
        "Trailer: x",
        "Range: bytes=1-2",
        " folded: line",
        "\tfolded",
        "NoColon",
        ": no name",
        "X: \0",
        "X: a\rb",
        "X-\u{e4}: \u{e4}",
    ]);
    prop_oneof![5 => harmless, 1 => other]
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    let method = mostly("GET", &["HEAD", "POST", "get", "OPTIONS", "G\tET", ""]);
    let page = mostly(
        "/",
        &["/long/one", "/long/one?q=1", "/nothing", "*", "http://quiet-otter.localhost/", "/#x", "/%2e", "x"],
    );
    let form = (
        select(form_differential::FORMS.to_vec()),
        mostly("", &["?lang=de", "?embed=1", "?name=x", "/", "%20"]),
    )
        .prop_map(|(id, behind)| format!("/f/{id}{behind}"));
    let space = mostly(" ", &["  ", "\t", "", " x "]);
    let version = mostly("HTTP/1.1", &["HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", "http/1.1", "HTTP/1.9", ""]);
    let of_site = mostly(
        "Host: quiet-otter.localhost",
        &["HOST:quiet-otter.localhost:80 ", "Host: localhost", "Host:", "X: y"],
    );
    let of_form = mostly("Host: localhost", &["HOST:localhost:80 ", "Host: quiet-otter.localhost", "Host:"]);
    let target =
        prop_oneof![2 => (page.prop_map(str::to_owned), of_site.boxed()), 1 => (form, of_form.boxed())];
    let end = mostly("\r\n", &["\n", "\r", "\r\r\n", "\r\n\r\n"]);
    let body = mostly("", &["abcd", "4\r\nabcd\r\n0\r\n\r\n", "0\r\n\r\n", "\r\n", "\0"]);
    (method, target, space, version, vec(line(), 0..5), end, body).prop_map(
        |(method, (target, host), space, version, lines, end, body)| {
            let first = [method, " ", &target, space, version].concat();
            let lines: String = lines.iter().map(|line| [line, end].concat()).collect();
            [&first, end, host, end, &lines, end, body].concat().into_bytes()
        },
    )
}

/// One corruption of a byte stream.
#[derive(Debug, Clone)]
enum Corruption {
    Replace(u8),
    Insert(u8),
    Remove,
    Truncate,
    Repeat,
}

fn corruption() -> impl Strategy<Value = Corruption> {
    let byte = || prop_oneof![3 => select(b"\r\n \t\0:,;/G0\x0b\x7f\xff".to_vec()), 1 => any::<u8>()];
    prop_oneof![
        byte().prop_map(Corruption::Replace),
        byte().prop_map(Corruption::Insert),
        Just(Corruption::Remove),
        Just(Corruption::Truncate),
        Just(Corruption::Repeat),
    ]
}

fn streams() -> impl Strategy<Value = Stream> {
    let requests = vec(request(), 1..5).prop_map(|requests| requests.concat());
    let faults = prop_oneof![1 => Just(0), 1 => 1..4_usize]
        .prop_flat_map(|count| vec((corruption(), any::<Index>()), count));
    (requests, faults, vec(any::<Index>(), 0..5)).prop_map(|(mut bytes, faults, cuts)| {
        for (fault, at) in faults {
            let at = at.index(bytes.len());
            match fault {
                Corruption::Replace(byte) => bytes[at] = byte,
                Corruption::Insert(byte) => bytes.insert(at, byte),
                Corruption::Remove => drop(bytes.remove(at)),
                Corruption::Truncate => bytes.truncate(at + 1),
                Corruption::Repeat => bytes.extend_from_within(at..),
            }
            if bytes.is_empty() {
                bytes.push(b'G');
            }
        }
        let bytes = with_closing_request(&bytes);
        let mut cuts: Vec<usize> = cuts.iter().map(|at| at.index(bytes.len())).collect();
        cuts.sort_unstable();
        Stream { bytes, cuts }
    })
}
