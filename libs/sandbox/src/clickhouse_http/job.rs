//! The execution of one request, on a blocking thread.

use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::body::ReceivedBody;
use super::chdb::{Connection, Output, Stream};
use super::engine::Engine;
use super::exception::Exception;
use super::formats::{Header, header_of_pieces};
use super::request::Request;
use super::statement::{is_streamable, output_format, parse_insert};

/// A client that reads nothing for this long is disconnected, as with ClickHouse's `http_send_timeout`.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// An event of a running job: pieces, then one of the two ends.
#[derive(Debug)]
pub(crate) enum Event {
    /// Bytes of the output.
    Piece(Bytes),
    /// The statement failed, possibly after some pieces.
    Failed(Exception),
    /// The statement ended. Rows read, bytes read, rows written, bytes written.
    Done([u64; 4]),
}

/// A request with its body, ready to run.
pub(crate) struct Job {
    pub(crate) request: Request,
    /// The statement, or the text up to an insert's rows.
    pub(crate) sql: Vec<u8>,
    /// The format of the output, or of an insert's rows.
    pub(crate) format: String,
    rows: Option<Rows>,
}

struct Rows {
    /// Rows from the `query` argument.
    before: Vec<u8>,
    body: ReceivedBody,
    start: u64,
}

impl Job {
    /// Determines the statement, its format and its rows.
    pub(crate) fn plan(request: Request, mut body: ReceivedBody) -> Result<Self, Exception> {
        let mut text = request.query.clone().into_bytes();
        let in_query = !text.is_empty();
        if !in_query {
            text = body.beginning()?;
        }
        let default = request.default_format.clone();
        if let Some(insert) = parse_insert(&text) {
            let format = insert.format.or(default).unwrap_or_else(|| "Values".to_owned());
            let mut before = Vec::new();
            let mut start = insert.rows_at as u64;
            if in_query {
                let rest = text.get(insert.rows_at..).unwrap_or_default();
                before = if rest.trim_ascii().is_empty() { Vec::new() } else { [rest, b"\n"].concat() };
                start = 0;
            }
            let sql = text.get(insert.head).unwrap_or_default().to_vec();
            return Ok(Self { request, sql, format, rows: Some(Rows { before, body, start }) });
        }
        let sql = match (in_query, body.length) {
            (true, 0) => text,
            (true, _) => [text, b"\n".to_vec(), body.text()?].concat(),
            (false, _) => body.text()?,
        };
        let named = output_format(&sql).map(str::to_owned);
        let format = named.or(default).unwrap_or_else(|| "TabSeparated".to_owned());
        Ok(Self { request, sql, format, rows: None })
    }

    /// Runs the statement and sends its events. Blocks.
    pub(crate) fn run(self, engine: &Engine, events: &EventSender) {
        let end = match self.execute(engine, events) {
            Ok(counts) => Event::Done(counts),
            Err(exception) => Event::Failed(exception),
        };
        // Fails if the client has disconnected.
        let _disconnected = events.send(end);
    }

    fn execute(self, engine: &Engine, events: &EventSender) -> Result<[u64; 4], Exception> {
        let mut connection = engine.session(&self.request)?;
        let Self { request, sql, format, rows } = self;
        if let Some(rows) = rows {
            return insert(&mut connection, &sql, &format, &request, rows);
        }
        if connection.count_statements(&sql) > 1 {
            let message = "Syntax error (Multi-statements are not allowed)";
            return Err(Exception::new(62, "SYNTAX_ERROR", message));
        }
        if let Some(header) = header_of_pieces(&format)
            && is_streamable(&sql)
            && !request.wait_for_end
            && !request.settings.iter().any(|(name, _)| name == "extremes")
        {
            match connection.stream(&sql, &format, &request.parameters) {
                Ok(stream) => return forward(stream, header, events),
                // For example `WITH … INSERT`. The library checks before it runs, so nothing has been executed yet.
                Err(refused) if refused.text.contains("Streaming query is not supported") => {}
                Err(exception) => return Err(exception),
            }
        }
        let output = connection.query(&sql, &format, &request.parameters)?;
        let counts = output.counts();
        events.send(Event::Piece(Bytes::from_owner(output)))?;
        Ok(counts)
    }
}

fn insert(
    connection: &mut Connection,
    sql: &[u8],
    format: &str,
    request: &Request,
    mut rows: Rows,
) -> Result<[u64; 4], Exception> {
    let mut insert = connection.insert(sql, format, &request.parameters)?;
    let appended = insert
        .append(&rows.before)
        .and_then(|()| rows.body.for_each_piece(rows.start, |piece| insert.append(piece)));
    match appended {
        // Finishes all the same: only then does the engine return the error of the rows.
        Err(error) => Err(insert.finish().err().unwrap_or(error)),
        Ok(()) => insert.finish().map(|output| output.counts()),
    }
}

fn forward(mut stream: Stream<'_>, header: Header, events: &EventSender) -> Result<[u64; 4], Exception> {
    let mut counts = [0; 4];
    let mut first = true;
    while let Some(piece) = stream.next()? {
        for (sum, count) in counts.iter_mut().zip(piece.counts()) {
            *sum += count;
        }
        let skip = if first { 0 } else { header.length(piece.as_ref()) };
        first = false;
        events.send(Event::Piece(without(piece, skip)))?;
    }
    Ok(counts)
}

fn without(piece: Output, skip: usize) -> Bytes {
    let bytes = Bytes::from_owner(piece);
    bytes.slice(skip.min(bytes.len())..)
}

/// Sends a job's events to the response from a blocking thread.
pub(crate) struct EventSender {
    pub(crate) events: mpsc::Sender<Event>,
    /// The runtime of the send timeout.
    pub(crate) runtime: Handle,
}

impl EventSender {
    fn send(&self, event: Event) -> Result<(), Exception> {
        let sent = self.runtime.block_on(async { self.events.send_timeout(event, SEND_TIMEOUT).await });
        sent.map_err(|_| Exception::new(24, "CANNOT_WRITE_TO_OSTREAM", "the client reads no more"))
    }
}
