//! One request's work for the engine, from the plan to the last byte, on a thread that may block.

use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::body::Received;
use super::chdb::{Connection, Output, Stream};
use super::engine::Engine;
use super::exception::Exception;
use super::formats::{Header, header_of_pieces};
use super::request::Request;
use super::statement::{comes_in_pieces, output_format, rows_follow};

/// A client that takes nothing for this long loses its answer (ClickHouse's `http_send_timeout`).
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// What a job says while it runs: pieces, then one of the two ends.
#[derive(Debug)]
pub(crate) enum Event {
    /// Bytes of the answer.
    Piece(Bytes),
    /// The statement failed, now or after some pieces.
    Failed(Exception),
    /// Rows and bytes read and written.
    Done([u64; 4]),
}

/// A request with its body, ready to run.
pub(crate) struct Job {
    /// What was asked.
    pub(crate) request: Request,
    /// The statement, or the text up to an insert's rows.
    pub(crate) sql: Vec<u8>,
    /// The format of the answer, or of the rows.
    pub(crate) format: String,
    rows: Option<Rows>,
}

struct Rows {
    /// Rows that stood in the `query` argument.
    before: Vec<u8>,
    body: Received,
    start: u64,
}

impl Job {
    /// Finds out what the request wants done.
    pub(crate) fn plan(request: Request, mut body: Received) -> Result<Self, Exception> {
        let mut text = request.query.clone().into_bytes();
        let in_query = !text.is_empty();
        if !in_query {
            text = body.beginning()?;
        }
        let default = request.default_format.clone();
        if let Some(insert) = rows_follow(&text) {
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

    /// Runs to the end, saying how it goes. Blocks.
    pub(crate) fn run(self, engine: &Engine, outlet: &Outlet) {
        let end = match self.perform(engine, outlet) {
            Ok(counts) => Event::Done(counts),
            Err(exception) => Event::Failed(exception),
        };
        // A client that has gone needs no last word.
        let _gone = outlet.send(end);
    }

    fn perform(self, engine: &Engine, outlet: &Outlet) -> Result<[u64; 4], Exception> {
        let mut connection = engine.session(&self.request)?;
        let Self { request, sql, format, rows } = self;
        if let Some(rows) = rows {
            return insert(&mut connection, &sql, &format, &request, rows);
        }
        if connection.count_statements(&sql) > 1 {
            let said = "Syntax error (Multi-statements are not allowed)";
            return Err(Exception::new(62, "SYNTAX_ERROR", said));
        }
        if let Some(header) = header_of_pieces(&format)
            && comes_in_pieces(&sql)
            && !request.wait_for_end
            && !request.settings.iter().any(|(name, _)| name == "extremes")
        {
            match connection.stream(&sql, &format, &request.parameters) {
                Ok(stream) => return forward(stream, header, outlet),
                // `WITH … INSERT`, say: the library looks before it runs, so nothing has happened yet.
                Err(refused) if refused.text.contains("Streaming query is not supported") => {}
                Err(exception) => return Err(exception),
            }
        }
        let output = connection.query(&sql, &format, &request.parameters)?;
        let counts = output.counts();
        outlet.send(Event::Piece(Bytes::from_owner(output)))?;
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
    let sent =
        insert.append(&rows.before).and_then(|()| rows.body.each(rows.start, |piece| insert.append(piece)));
    match sent {
        // Finished even so: only then does the engine say what was wrong with the rows.
        Err(noticed) => Err(insert.finish().err().unwrap_or(noticed)),
        Ok(()) => insert.finish().map(|output| output.counts()),
    }
}

fn forward(mut stream: Stream<'_>, header: Header, outlet: &Outlet) -> Result<[u64; 4], Exception> {
    let mut counts = [0; 4];
    let mut first = true;
    while let Some(piece) = stream.next()? {
        for (sum, count) in counts.iter_mut().zip(piece.counts()) {
            *sum += count;
        }
        let skip = if first { 0 } else { header.length(piece.as_ref()) };
        first = false;
        outlet.send(Event::Piece(without(piece, skip)))?;
    }
    Ok(counts)
}

fn without(piece: Output, skip: usize) -> Bytes {
    let bytes = Bytes::from_owner(piece);
    bytes.slice(skip.min(bytes.len())..)
}

/// Where a job's events go.
pub(crate) struct Outlet {
    /// To the answer.
    pub(crate) events: mpsc::Sender<Event>,
    /// To wait on it with a limit.
    pub(crate) runtime: Handle,
}

impl Outlet {
    fn send(&self, event: Event) -> Result<(), Exception> {
        let sent = self.runtime.block_on(async { self.events.send_timeout(event, SEND_TIMEOUT).await });
        sent.map_err(|_| Exception::new(24, "CANNOT_WRITE_TO_OSTREAM", "the client takes no more"))
    }
}
