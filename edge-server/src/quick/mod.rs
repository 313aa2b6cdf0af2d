//! The quick lane in front of hyper: plain requests over HTTP/1.1 for pages that are known right now.
//!
//! hyper makes a map of every request's headers, and a map of every answer's, and writes that out; for a browser's
//! fifteen headers this costs more than all else that a hit needs. Here the head is read where it lies, and the answer
//! is put together from lines that stand ready. What isn't plainly such a request is left to hyper, with all bytes
//! that were read and not answered, and hyper has the connection from then on. So nothing is decided here of where a
//! request ends: what is answered has no body, and where its head ends hyper's own reader says.

mod answers;
mod head;

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use answers::{Answers, Saying, Today};
use bytes::Bytes;
use head::{Head, Plain};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::edge::Edge;
use crate::encodings::Accepted;
use crate::hit::{self, Hit, Wanted};
use crate::replies::{Chosen, Source, new_request_id};
use crate::seats::{Seat, Wish};
use crate::sites::Remembered;

/// What is read ahead, at most. hyper begins with as much.
const READ_BYTES: usize = 8 * 1024;
/// A head that isn't whole after so many reads is not looked at again from its beginning.
const READS_MAX: usize = 4;

/// What hyper goes on with.
#[derive(Default)]
pub(crate) struct Rest {
    /// What was read and not answered; it comes before what is still to be read.
    pub(crate) unread: Bytes,
    /// The connection speaks HTTP/1.1, as something was answered: what looks like the beginning of HTTP/2 is none.
    pub(crate) is_http1: bool,
}

/// Serves a connection as long as it asks plainly for what is known. `None` if it is over.
pub(crate) async fn serve(
    stream: &mut TcpStream,
    edge: &Edge,
    known: &mut Option<Remembered>,
    seat: &Seat,
) -> Option<Rest> {
    let mut lane = Lane { edge, known, seat, answers: Answers::default(), today: Today::default() };
    let mut watched = Watched { seat, waker: None };
    let mut came = Vec::with_capacity(READ_BYTES);
    let (mut reads, mut is_http1) = (0, false);
    let rest = |came: Vec<u8>, is_http1| Some(Rest { unread: came.into(), is_http1 });
    loop {
        let (answered, next) = lane.answer(&came);
        if !lane.answers.is_empty() {
            lane.answers.write(stream, &mut watched).await.ok()?;
            came.drain(..answered);
            (reads, is_http1) = (0, true);
        }
        let may_read = reads < READS_MAX && came.len() < READ_BYTES;
        match next {
            Next::Answer => continue,
            Next::Read if may_read => {}
            Next::Read | Next::Leave => return rest(came, is_http1),
        }
        reads += 1;
        match watched.until_asked_to_leave(|cx| pin!(stream.read_buf(&mut came)).poll(cx)).await {
            // hyper knows what to do about half a head, be it the last that comes or be the edge about to end.
            None | Some(Ok(0)) if !came.is_empty() => return rest(came, is_http1),
            None => {
                let _gone_already = stream.shutdown().await;
                return None;
            }
            Some(Ok(0) | Err(_)) => return None,
            Some(Ok(_)) => {}
        }
    }
}

/// What is to be done once the answers are written.
enum Next {
    /// Answer the rest of what came.
    Answer,
    /// Read more.
    Read,
    /// Leave the rest to hyper.
    Leave,
}

struct Lane<'a> {
    edge: &'a Edge,
    known: &'a mut Option<Remembered>,
    seat: &'a Seat,
    answers: Answers,
    today: Today,
}

impl Lane<'_> {
    /// Answers what it can of what came; gives how many bytes that was.
    fn answer(&mut self, came: &[u8]) -> (usize, Next) {
        let mut at = 0;
        while at < came.len() {
            if self.answers.is_full() {
                return (at, Next::Answer);
            }
            match head::read(&came[at..]) {
                Head::Plain(plain, len) if self.answer_one(&plain) => at += len,
                Head::Plain(..) | Head::Other => return (at, Next::Leave),
                Head::Beginning => break,
            }
        }
        (at, Next::Read)
    }

    /// Whether it could.
    fn answer_one(&mut self, asked: &Plain<'_>) -> bool {
        let now = Instant::now();
        let wanted = Wanted { host: asked.host, path: asked.path, is_get: asked.is_get };
        let Some(Hit { page, claimed }) = hit::find(self.edge, self.known, &wanted, now) else {
            return false;
        };
        self.seat.begin();
        let accepted = Accepted::of(asked.accept_encoding.into_iter());
        let chosen = Chosen::of(&page, accepted, asked.if_none_match.into_iter());
        let date = self.today.text(now, &self.edge.clock);
        let (is_get, from) = (asked.is_get, Source::Memory);
        let kept = asked.request_id.filter(|id| web::is_request_id(id));
        let new = kept.is_none().then(|| new_request_id(&self.edge.rng));
        let request_id = kept.or(new.as_ref().map(<[u8; 32]>::as_slice)).unwrap_or_default();
        self.answers.add(&chosen, &Saying { is_get, claimed, from, request_id, date });
        true
    }
}

/// Waits for a connection without losing sight of its seat.
struct Watched<'a> {
    seat: &'a Seat,
    waker: Option<Waker>,
}

impl Watched<'_> {
    /// `None` once the connection is to end.
    async fn until_asked_to_leave<T>(
        &mut self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        poll_fn(|cx| match self.seat.wish(&mut self.waker, cx) {
            Wish::Stay => poll(cx).map(Some),
            Wish::Leave | Wish::Cut => Poll::Ready(None),
        })
        .await
    }

    /// An error once the connection is to end at once.
    async fn until_cut<T>(
        &mut self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> io::Result<T> {
        poll_fn(|cx| match self.seat.wish(&mut self.waker, cx) {
            Wish::Stay | Wish::Leave => poll(cx),
            Wish::Cut => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        })
        .await
    }
}
