//! An answer of ClickHouse's HTTP interface, made of a job's events.
//!
//! The first megabyte is held back, as ClickHouse does: a statement that fails within it gets a proper
//! status. Later a status can't be taken back; then the error stands in the body's last chunk, in the form
//! that the `X-ClickHouse-Exception-Tag` header announces, and the connection breaks off.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use tokio::sync::mpsc;

use super::exception::Exception;
use super::formats::media_type;
use super::frames::Encoding;
use super::job::Event;

const HELD_BACK: usize = 1 << 20;
/// Time for a client to read an error in the body's last chunk.
const LINGER: Duration = Duration::from_secs(2);

/// What is known of an answer before its statement runs.
pub(crate) struct Outline {
    /// The statement's id.
    pub(crate) query_id: String,
    /// The format of the answer's rows.
    pub(crate) format: String,
    /// How its bytes go over the wire.
    pub(crate) encoding: Encoding,
    /// Sixteen letters that no data holds by chance.
    pub(crate) tag: String,
}

impl Outline {
    /// Waits until it is clear what the answer is, and begins it.
    pub(crate) async fn answer(self, mut events: mpsc::Receiver<Event>) -> Response<Body> {
        let started = Instant::now();
        let mut held = VecDeque::new();
        let mut size = 0;
        while size <= HELD_BACK {
            match events.recv().await {
                Some(Event::Piece(piece)) => {
                    size += piece.len();
                    held.push_back(piece);
                }
                Some(Event::Done(counts)) => return self.whole(&held, summary(counts, started)),
                Some(Event::Failed(exception)) => return self.refusal(&exception),
                None => return self.refusal(&Exception::from_engine("the statement's thread ended early")),
            }
        }
        let tag = self.tag.clone();
        let mut response = Response::new(Body::from_stream(rest(held, events, self.encoding, tag)));
        self.head(&mut response, summary([0; 4], started));
        set(&mut response, "x-clickhouse-exception-tag", &self.tag);
        response
    }

    fn whole(&self, pieces: &VecDeque<Bytes>, summary: String) -> Response<Body> {
        let mut bytes = BytesMut::new();
        for piece in pieces {
            match self.encoding.encode(piece.clone()) {
                Ok(piece) => bytes.extend_from_slice(&piece),
                Err(error) => return self.refusal(&Exception::from_engine(&error.to_string())),
            }
        }
        let mut response = Response::new(Body::from(bytes.freeze()));
        self.head(&mut response, summary);
        response
    }

    fn head(&self, response: &mut Response<Body>, summary: String) {
        set(response, header::CONTENT_TYPE.as_str(), media_type(&self.format));
        set(response, "x-clickhouse-format", &self.format);
        set(response, "x-clickhouse-summary", &summary);
        set(response, "x-clickhouse-query-id", &self.query_id);
        if self.encoding == Encoding::Lz4Frames {
            set(response, header::CONTENT_ENCODING.as_str(), "lz4");
        }
    }

    fn refusal(&self, exception: &Exception) -> Response<Body> {
        let mut response = refusal(exception);
        set(&mut response, "x-clickhouse-query-id", &self.query_id);
        response
    }
}

/// The answer to a request that failed before a byte of output.
pub(crate) fn refusal(exception: &Exception) -> Response<Body> {
    let mut response = plain(exception.status(), exception.line());
    set(&mut response, "x-clickhouse-exception-code", &exception.code.to_string());
    response
}

/// A short text.
pub(crate) fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE.as_str(), "text/plain; charset=UTF-8");
    response
}

fn set(response: &mut Response<Body>, name: &'static str, value: &str) {
    // A value that no header can hold (a query id with a line's end) is left out.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}

fn summary([read_rows, read_bytes, written_rows, written_bytes]: [u64; 4], started: Instant) -> String {
    let elapsed = started.elapsed().as_nanos();
    format!(
        r#"{{"read_rows":"{read_rows}","read_bytes":"{read_bytes}","written_rows":"{written_rows}","written_bytes":"{written_bytes}","elapsed_ns":"{elapsed}"}}"#
    )
}

/// What follows the held-back pieces.
enum Rest {
    Flowing(VecDeque<Bytes>, mpsc::Receiver<Event>),
    /// The error is on its way; what remains is to break off.
    Broken,
    Over,
}

fn rest(
    held: VecDeque<Bytes>,
    events: mpsc::Receiver<Event>,
    encoding: Encoding,
    tag: String,
) -> impl Stream<Item = std::io::Result<Bytes>> {
    stream::unfold(Rest::Flowing(held, events), move |state| {
        let tag = tag.clone();
        async move {
            let (mut held, mut events) = match state {
                Rest::Flowing(held, events) => (held, events),
                Rest::Broken => {
                    // Breaking off throws away what still waits for the client, the error included. A client
                    // that has read it hangs up, which ends this; the others lose their connection then.
                    let _hung_up = tokio::time::timeout(LINGER, std::future::pending::<()>()).await;
                    return Some((Err(std::io::Error::other("the statement failed")), Rest::Over));
                }
                Rest::Over => return None,
            };
            let event = match held.pop_front() {
                Some(piece) => Some(Event::Piece(piece)),
                None => events.recv().await,
            };
            match event {
                Some(Event::Piece(piece)) => Some((encoding.encode(piece), Rest::Flowing(held, events))),
                Some(Event::Done(_)) => None,
                Some(Event::Failed(exception)) => {
                    Some((encoding.encode(last_words(&exception, &tag)), Rest::Broken))
                }
                None => Some((Err(std::io::Error::other("the statement's thread ended")), Rest::Over)),
            }
        }
    })
}

/// The form since ClickHouse 25.11; the length counts the message with its line's end.
fn last_words(exception: &Exception, tag: &str) -> Bytes {
    let message = exception.line();
    let length = message.len();
    Bytes::from(format!("\r\n__exception__\r\n{tag}\r\n{message}{length} {tag}\r\n__exception__\r\n"))
}
