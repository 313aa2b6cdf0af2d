//! The state of a connection that the fast path hands to hyper.

use bytes::Bytes;

/// A connection's unanswered bytes and its protocol.
#[derive(Default)]
pub(in crate::transport) struct Handoff {
    /// Bytes that were read and not answered; they come before what is still to be read.
    pub(in crate::transport) unread: Bytes,
    pub(in crate::transport) protocol: Protocol,
}

/// The HTTP version of a connection, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::transport) enum Protocol {
    #[default]
    Unknown,
    /// A request was answered as HTTP/1.1, so a later HTTP/2 preface is an error.
    Http1,
    /// The connection starts with the HTTP/2 preface.
    Http2,
}

/// The HTTP/2 connection preface (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl Handoff {
    pub(super) fn new(unread: Vec<u8>, has_answered: bool) -> Self {
        let protocol = match () {
            () if has_answered => Protocol::Http1,
            () if unread.starts_with(PREFACE) => Protocol::Http2,
            () => Protocol::Unknown,
        };
        Self { unread: unread.into(), protocol }
    }
}
