//! Responses of the fast path, written together: heads in one buffer, bodies referenced where they are in memory.

use std::io::{self, IoSlice};
use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use service::Clock;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::watch::Watch;
use crate::sites::cached_response::CachedResponse;

/// Responses in a batch. A client that pipelines more requests waits until the batch is written.
const MAX_RESPONSES: usize = 16;
/// Space reserved for a head; heads are shorter.
const HEAD_BYTES: usize = 512;
/// Bodies up to this size are copied behind their heads, which is cheaper than another slice to write.
const COPIED_BYTES: usize = 512;

/// Responses to be written, in order.
#[derive(Default)]
pub(super) struct ResponseBatch {
    text: Vec<u8>,
    /// Bodies, each with the length of the text in front of it.
    bodies: Vec<(usize, Bytes)>,
    count: usize,
}

/// The parts of a response head that do not depend on the page.
pub(super) struct ResponseMeta<'a> {
    pub(super) is_get: bool,
    pub(super) request_id: &'a [u8],
    pub(super) date: &'a str,
}

impl ResponseBatch {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= MAX_RESPONSES
    }

    /// Appends a response.
    pub(super) fn add(&mut self, response: &CachedResponse<'_>, meta: &ResponseMeta<'_>) {
        self.text.reserve(HEAD_BYTES);
        response.write_head(&mut self.text);
        let date = meta.date.as_bytes();
        for part in [&b"x-request-id: "[..], meta.request_id, b"\r\ndate: ", date, b"\r\n\r\n"] {
            self.text.extend_from_slice(part);
        }
        match response.body().filter(|_| meta.is_get) {
            Some(body) if body.len() > COPIED_BYTES => self.bodies.push((self.text.len(), body.clone())),
            Some(body) => self.text.extend_from_slice(body),
            None => {}
        }
        self.count += 1;
    }

    /// Writes all responses, at the client's pace, until the connection is aborted.
    pub(super) async fn write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        watch: &mut Watch<'_>,
    ) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); 2 * MAX_RESPONSES + 1];
        let mut at = 0;
        let mut filled = 0;
        for (end, body) in &self.bodies {
            (slices[filled], slices[filled + 1]) = (IoSlice::new(&self.text[at..*end]), IoSlice::new(body));
            (at, filled) = (*end, filled + 2);
        }
        if at < self.text.len() {
            slices[filled] = IoSlice::new(&self.text[at..]);
            filled += 1;
        }
        let mut left = &mut slices[..filled];
        while !left.is_empty() {
            let written = watch
                .unless_aborted(pin!(stream.write_vectored(left)))
                .await
                .ok_or(io::ErrorKind::TimedOut)??;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            watch.connection.record_written(written);
            IoSlice::advance_slices(&mut left, written);
        }
        // A TLS stream may hold what it has encrypted; a TCP stream has nothing to flush.
        watch.unless_aborted(pin!(stream.flush())).await.ok_or(io::ErrorKind::TimedOut)??;
        self.text.clear();
        self.bodies.clear();
        self.count = 0;
        Ok(())
    }
}

/// The `date` header, formatted once a second.
#[derive(Default)]
pub(super) struct DateCache {
    pub(super) text: String,
    /// The same as a Unix timestamp.
    pub(super) second: i64,
    valid_until: Option<Instant>,
}

impl DateCache {
    pub(super) fn at(&mut self, now: Instant, clock: &Clock) -> &Self {
        if self.valid_until.is_none_or(|until| until <= now) {
            let date = clock.now();
            self.text = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
            self.second = date.timestamp();
            let left = Duration::from_millis(1_000 - u64::from(date.timestamp_subsec_millis()).min(999));
            self.valid_until = Some(now + left);
        }
        self
    }
}
