//! The quick lane in front of hyper: plain requests over HTTP/1.1 for pages of sites, and of forms.
//!
//! hyper makes a map of every request's headers, and a map of every answer's, and writes that out; for a browser's
//! fifteen headers this costs more than all else that a hit needs. Here the head is read where it lies, and the answer
//! is put together from lines that stand ready. What isn't plainly such a request is left to hyper, with all bytes
//! that were read and not answered, and hyper has the connection from then on. So nothing is decided here of where a
//! request ends: what is answered has no body, and where its head ends hyper's own reader says.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

use super::request_head::{self as head, Head, Plain};
use super::response_batch::{Answers, DateCache, ResponseMeta};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::forms::{self, Ready};
use crate::sites::connection_cache::Memory;
use crate::sites::page_lookup::{self, CachedPage};
use crate::sites::page_response::{SelectedBody, new_request_id};
use crate::sites::pages::encodings::Accepted;
use crate::state::EdgeState;
use crate::transport::connections::{Connection, Disposition};

/// What is read ahead, at most. hyper begins with as much.
const READ_BYTES: usize = 8 * 1024;
/// A head that isn't whole after so many reads is not looked at again from its beginning.
const READS_MAX: usize = 4;

/// What hyper goes on with.
#[derive(Default)]
pub(crate) struct Handoff {
    /// What was read and not answered; it comes before what is still to be read.
    pub(crate) unread: Bytes,
    pub(crate) spoken: Protocol,
}

/// Which HTTP a connection speaks, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Protocol {
    #[default]
    Unknown,
    /// Something was answered: what looks like the beginning of HTTP/2 from here on is none.
    Http1,
    /// It begins as HTTP/2 does, without an upgrade.
    Http2,
}

/// How HTTP/2 begins (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl Handoff {
    fn of(record_cache_status: Vec<u8>, has_answered: bool) -> Self {
        let spoken = match () {
            () if has_answered => Protocol::Http1,
            () if record_cache_status.starts_with(PREFACE) => Protocol::Http2,
            () => Protocol::Unknown,
        };
        Self { unread: record_cache_status.into(), spoken }
    }
}

/// Something to be sent.
enum Found {
    Page(CachedPage),
    Form(Arc<Ready>),
}

/// Serves a connection as long as it asks plainly for pages. `None` if it is over.
pub(crate) async fn serve(
    stream: &mut TcpStream,
    edge: &EdgeState,
    memory: &mut Memory,
    seat: &Arc<Connection>,
) -> Option<Handoff> {
    let mut lane = Lane { edge, memory, seat, answers: Answers::default(), today: DateCache::default() };
    let mut watched = Watched { seat, waker: None };
    let mut record_cache_status = Vec::with_capacity(READ_BYTES);
    let (mut reads, mut has_answered) = (0, false);
    loop {
        let (answered, next) = lane.answer(&record_cache_status);
        if !lane.answers.is_empty() {
            lane.answers.write(stream, &mut watched).await.ok()?;
            record_cache_status.drain(..answered);
            (reads, has_answered) = (0, true);
        }
        match next {
            Next::Answer => continue,
            Next::Ask => {
                let asked = watched.until_cut(pin!(lane.ask(&record_cache_status))).await?;
                let Some(answered) = asked else {
                    return Some(Handoff::of(record_cache_status, has_answered));
                };
                record_cache_status.drain(..answered);
            }
            Next::Read if reads < READS_MAX && record_cache_status.len() < READ_BYTES => {
                reads += 1;
                match watched.read(stream, &mut record_cache_status).await {
                    // hyper knows what to do about half a head, be it the last that comes or be the edge to end.
                    None | Some(Ok(0)) if !record_cache_status.is_empty() => {
                        return Some(Handoff::of(record_cache_status, has_answered));
                    }
                    None => {
                        let _gone_already = stream.shutdown().await;
                        return None;
                    }
                    Some(Ok(0) | Err(_)) => return None,
                    Some(Ok(_)) => {}
                }
            }
            Next::Read | Next::Leave => return Some(Handoff::of(record_cache_status, has_answered)),
        }
    }
}

/// What is to be done once the answers are written.
enum Next {
    /// Answer the rest of what came.
    Answer,
    /// Ask about the page that is wanted next.
    Ask,
    /// Read more.
    Read,
    /// Leave the rest to hyper.
    Leave,
}

struct Lane<'a> {
    edge: &'a EdgeState,
    memory: &'a mut Memory,
    seat: &'a Arc<Connection>,
    answers: Answers,
    today: DateCache,
}

impl Lane<'_> {
    /// Answers what can be answered at once of what came; gives how many bytes that was.
    fn answer(&mut self, record_cache_status: &[u8]) -> (usize, Next) {
        let mut at = 0;
        while at < record_cache_status.len() {
            if self.answers.is_full() {
                return (at, Next::Answer);
            }
            let (asked, len) = match head::read(&record_cache_status[at..]) {
                Head::Plain(asked, len) => (asked, len),
                Head::Beginning => break,
                Head::Other => return (at, Next::Leave),
            };
            let now = Instant::now();
            let Some(found) = self.find(&asked, now) else { return (at, Next::Ask) };
            self.add(&asked, &found, now);
            at += len;
        }
        (at, Next::Read)
    }

    fn find(&mut self, asked: &Plain<'_>, now: Instant) -> Option<Found> {
        let wanted = asked.wanted();
        if let Some(form) = forms::find(self.edge, self.memory, &wanted, asked.accept_language, now) {
            return Some(Found::Form(form));
        }
        page_lookup::find(self.edge, self.memory, &wanted, now).map(Found::Page)
    }

    /// Answers the first request of what came, though it may take a while; gives its length, or `None` if it isn't
    /// simply answered with a page.
    async fn ask(&mut self, record_cache_status: &[u8]) -> Option<usize> {
        let Head::Plain(asked, len) = head::read(record_cache_status) else { return None };
        let _busy = self.seat.begin_response();
        let wanted = asked.wanted();
        let found = match forms::ask(self.edge, &wanted, asked.accept_language).await {
            Some(form) => Found::Form(form),
            None => Found::Page(page_lookup::ask(self.edge, &wanted).await?),
        };
        self.add(&asked, &found, Instant::now());
        Some(len)
    }

    fn add(&mut self, asked: &Plain<'_>, found: &Found, now: Instant) {
        self.seat.begin();
        let accepted = Accepted::of(asked.accept_encoding.into_iter());
        let DateCache { text: date, second, .. } = self.today.at(now, &self.edge.clock);
        let kept = asked.request_id.filter(|id| web::is_valid_request_id(id));
        let new = kept.is_none().then(|| new_request_id(&self.edge.rng));
        let request_id = kept.or(new.as_ref().map(<[u8; 32]>::as_slice)).unwrap_or_default();
        let saying = ResponseMeta { is_get: asked.is_get, request_id, date };
        match found {
            Found::Page(hit) => {
                let chosen = SelectedBody::of(&hit.page, accepted, asked.if_none_match.into_iter());
                self.answers.add_page(hit, &chosen, &saying);
            }
            Found::Form(page) => {
                let body = self.edge.forms.fill(page, accepted, *second);
                self.answers.add_form(page.lines(), &body, &saying);
            }
        }
    }
}

/// Waits for a connection without losing sight of its seat.
pub(super) struct Watched<'a> {
    pub(super) seat: &'a Connection,
    waker: Option<Waker>,
}

impl Watched<'_> {
    /// Reads more; `None` once the connection is to end.
    async fn read(
        &mut self,
        stream: &mut TcpStream,
        record_cache_status: &mut Vec<u8>,
    ) -> Option<io::Result<usize>> {
        poll_fn(|cx| match self.seat.wish(&mut self.waker, cx) {
            Disposition::Stay => pin!(stream.read_buf(record_cache_status)).poll(cx).map(Some),
            Disposition::Leave | Disposition::Cut => Poll::Ready(None),
        })
        .await
    }

    /// What comes of `work`; `None` if the connection is to end at once.
    pub(super) async fn until_cut<F: Future>(&mut self, mut work: Pin<&mut F>) -> Option<F::Output> {
        poll_fn(|cx| match self.seat.wish(&mut self.waker, cx) {
            Disposition::Stay | Disposition::Leave => work.as_mut().poll(cx).map(Some),
            Disposition::Cut => Poll::Ready(None),
        })
        .await
    }
}
