//! Answers on their way out: their heads in one text, their bodies beside it where they lie in memory, all of it
//! handed to the kernel at once.

use std::io::{self, IoSlice};
use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use service::Clock;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::serve::Watched;
use crate::sites::header_templates::Layout;
use crate::sites::page_lookup::CachedPage;
use crate::sites::page_response::SelectedBody;

/// So many answers are written at once; whoever asks for more at a time waits for these to be taken.
const AT_ONCE: usize = 16;
/// What a head takes, and more.
const HEAD_BYTES: usize = 512;
/// Bodies up to this are copied behind their heads: cheaper than one piece more for the kernel to gather.
const COPIED_BYTES: usize = 512;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";

/// Answers to be written, in their order.
#[derive(Default)]
pub(super) struct Answers {
    text: Vec<u8>,
    /// Bodies, each with the length of the text in front of it.
    bodies: Vec<(usize, Bytes)>,
    count: usize,
}

/// What one answer says beside what is sent.
pub(super) struct ResponseMeta<'a> {
    /// With a body, unless it is had.
    pub(super) is_get: bool,
    pub(super) request_id: &'a [u8],
    pub(super) date: &'a str,
}

impl Answers {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= AT_ONCE
    }

    /// Puts a site's page behind the others.
    pub(super) fn add_page(
        &mut self,
        hit: &CachedPage,
        SelectedBody { sent, had }: &SelectedBody<'_>,
        saying: &ResponseMeta<'_>,
    ) {
        let layout = Layout { page: !had, encoded: !had && sent.coding.is_some(), claimed: hit.claimed };
        self.put(&[
            if *had { b"HTTP/1.1 304 Not Modified\r\n" } else { OK },
            layout.lines(),
            b"etag: ",
            sent.etag.as_bytes(),
            b"\r\nx-cache: ",
            hit.from.as_str().as_bytes(),
            b"\r\n",
        ]);
        if *had {
            return self.end(saying, None);
        }
        if let Some(coding) = &sent.coding {
            self.put(&[b"content-encoding: ", coding.as_bytes(), b"\r\n"]);
        }
        self.end(saying, Some(&sent.body));
    }

    /// Puts a form's page behind the others, under headers that stand in `lines`.
    pub(super) fn add_form(
        &mut self,
        lines: &[u8],
        (body, is_gzip): &(Bytes, bool),
        saying: &ResponseMeta<'_>,
    ) {
        self.put(&[OK, lines, if *is_gzip { b"content-encoding: gzip\r\n" } else { b"" }]);
        self.end(saying, Some(body));
    }

    fn put(&mut self, parts: &[&[u8]]) {
        self.text.reserve(HEAD_BYTES);
        parts.iter().for_each(|part| self.text.extend_from_slice(part));
    }

    fn end(&mut self, saying: &ResponseMeta<'_>, body: Option<&Bytes>) {
        if let Some(body) = body {
            self.put(&[b"content-length: ", itoa::Buffer::new().format(body.len()).as_bytes(), b"\r\n"]);
        }
        let date = saying.date.as_bytes();
        self.put(&[b"x-request-id: ", saying.request_id, b"\r\ndate: ", date, b"\r\n\r\n"]);
        match body.filter(|_| saying.is_get) {
            Some(body) if body.len() > COPIED_BYTES => self.bodies.push((self.text.len(), body.clone())),
            Some(body) => self.text.extend_from_slice(body),
            None => {}
        }
        self.count += 1;
    }

    /// Writes all of them, however slowly they are taken, as long as the connection may live.
    pub(super) async fn write(
        &mut self,
        stream: &mut TcpStream,
        watched: &mut Watched<'_>,
    ) -> io::Result<()> {
        let mut pieces = [IoSlice::new(&[]); 2 * AT_ONCE + 1];
        let mut at = 0;
        let mut filled = 0;
        for (end, body) in &self.bodies {
            (pieces[filled], pieces[filled + 1]) = (IoSlice::new(&self.text[at..*end]), IoSlice::new(body));
            (at, filled) = (*end, filled + 2);
        }
        if at < self.text.len() {
            pieces[filled] = IoSlice::new(&self.text[at..]);
            filled += 1;
        }
        let mut left = &mut pieces[..filled];
        while !left.is_empty() {
            let taken = watched
                .until_cut(pin!(stream.write_vectored(left)))
                .await
                .ok_or(io::ErrorKind::TimedOut)??;
            if taken == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            watched.seat.record_written(taken);
            IoSlice::advance_slices(&mut left, taken);
        }
        self.text.clear();
        self.bodies.clear();
        self.count = 0;
        Ok(())
    }
}

/// The date in answers, written once a second.
#[derive(Default)]
pub(super) struct DateCache {
    pub(super) text: String,
    /// The same, since 1970.
    pub(super) second: i64,
    until: Option<Instant>,
}

impl DateCache {
    pub(super) fn at(&mut self, now: Instant, clock: &Clock) -> &Self {
        if self.until.is_none_or(|until| until <= now) {
            let date = clock.now();
            self.text = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
            self.second = date.timestamp();
            let left = Duration::from_millis(1_000 - u64::from(date.timestamp_subsec_millis()).min(999));
            self.until = Some(now + left);
        }
        self
    }
}
