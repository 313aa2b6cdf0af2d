//! A response of ClickHouse's HTTP interface, built from a job's events.
//!
//! As in ClickHouse, the first megabyte is buffered, so that a statement that fails within it gets an error status. After
//! that the status is sent: the error then goes into the body's last chunk, in the format that the
//! `X-ClickHouse-Exception-Tag` header announces, and the connection is closed.

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

const BUFFERED_BYTES: usize = 1 << 20;
/// Time for a client to read an error from the body's last chunk.
const CLOSE_DELAY: Duration = Duration::from_secs(2);

/// The part of a response that is known before the statement runs.
pub(crate) struct ResponseHead {
    pub(crate) query_id: String,
    /// The format of the rows.
    pub(crate) format: String,
    pub(crate) encoding: Encoding,
    /// The exception tag: sixteen random letters, which don't occur in data by chance.
    pub(crate) tag: String,
}

impl ResponseHead {
    /// Waits for the statement's end or the first megabyte of output, and returns the response.
    pub(crate) async fn respond(self, mut events: mpsc::Receiver<Event>) -> Response<Body> {
        let started = Instant::now();
        let mut buffered = VecDeque::new();
        let mut size = 0;
        while size <= BUFFERED_BYTES {
            match events.recv().await {
                Some(Event::Piece(piece)) => {
                    size += piece.len();
                    buffered.push_back(piece);
                }
                Some(Event::Done(counts)) => return self.whole(&buffered, summary(counts, started)),
                Some(Event::Failed(exception)) => return self.error(&exception),
                None => return self.error(&Exception::from_engine("the statement's thread exited early")),
            }
        }
        let tag = self.tag.clone();
        let mut response = Response::new(Body::from_stream(rest(buffered, events, self.encoding, tag)));
        self.set_headers(&mut response, summary([0; 4], started));
        set(&mut response, "x-clickhouse-exception-tag", &self.tag);
        response
    }

    fn whole(&self, pieces: &VecDeque<Bytes>, summary: String) -> Response<Body> {
        let mut bytes = BytesMut::new();
        for piece in pieces {
            match self.encoding.encode(piece.clone()) {
                Ok(piece) => bytes.extend_from_slice(&piece),
                Err(error) => return self.error(&Exception::from_engine(&error.to_string())),
            }
        }
        let mut response = Response::new(Body::from(bytes.freeze()));
        self.set_headers(&mut response, summary);
        response
    }

    fn set_headers(&self, response: &mut Response<Body>, summary: String) {
        set(response, header::CONTENT_TYPE.as_str(), media_type(&self.format));
        set(response, "x-clickhouse-format", &self.format);
        set(response, "x-clickhouse-summary", &summary);
        set(response, "x-clickhouse-query-id", &self.query_id);
        if self.encoding == Encoding::Lz4Frames {
            set(response, header::CONTENT_ENCODING.as_str(), "lz4");
        }
    }

    fn error(&self, exception: &Exception) -> Response<Body> {
        let mut response = error_response(exception);
        set(&mut response, "x-clickhouse-query-id", &self.query_id);
        response
    }
}

/// Returns the response to a request that failed before any output.
pub(crate) fn error_response(exception: &Exception) -> Response<Body> {
    let mut response = plain(exception.status(), exception.line());
    set(&mut response, "x-clickhouse-exception-code", &exception.code.to_string());
    response
}

/// Returns a plain-text response.
pub(crate) fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE.as_str(), "text/plain; charset=UTF-8");
    response
}

fn set(response: &mut Response<Body>, name: &'static str, value: &str) {
    // Skips values that are invalid in a header, such as a query id with a line break.
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

/// The state of a body that is being sent.
enum Rest {
    Streaming(VecDeque<Bytes>, mpsc::Receiver<Event>),
    /// The error has been sent; the connection is about to be closed.
    Failed,
    Ended,
}

fn rest(
    buffered: VecDeque<Bytes>,
    events: mpsc::Receiver<Event>,
    encoding: Encoding,
    tag: String,
) -> impl Stream<Item = std::io::Result<Bytes>> {
    stream::unfold(Rest::Streaming(buffered, events), move |state| {
        let tag = tag.clone();
        async move {
            let (mut buffered, mut events) = match state {
                Rest::Streaming(buffered, events) => (buffered, events),
                Rest::Failed => {
                    // Closing the connection discards unread data, the error included. A client that has read it
                    // disconnects, which ends this wait; the others are disconnected after it.
                    let _disconnected = tokio::time::timeout(CLOSE_DELAY, std::future::pending::<()>()).await;
                    return Some((Err(std::io::Error::other("the statement failed")), Rest::Ended));
                }
                Rest::Ended => return None,
            };
            let event = match buffered.pop_front() {
                Some(piece) => Some(Event::Piece(piece)),
                None => events.recv().await,
            };
            match event {
                Some(Event::Piece(piece)) => {
                    Some((encoding.encode(piece), Rest::Streaming(buffered, events)))
                }
                Some(Event::Done(_)) => None,
                Some(Event::Failed(exception)) => {
                    Some((encoding.encode(trailer(&exception, &tag)), Rest::Failed))
                }
                None => Some((Err(std::io::Error::other("the statement's thread exited")), Rest::Ended)),
            }
        }
    })
}

/// Returns the error in the format since ClickHouse 25.11. The length includes the message's line break.
fn trailer(exception: &Exception, tag: &str) -> Bytes {
    let message = exception.line();
    let length = message.len();
    Bytes::from(format!("\r\n__exception__\r\n{tag}\r\n{message}{length} {tag}\r\n__exception__\r\n"))
}
