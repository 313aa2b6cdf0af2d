//! A request's body, received whole before the engine hears of it.
//!
//! An insert whose client vanishes half-way must write nothing, and a client that dawdles must not hold a
//! place among the statements under way; so rows are collected first, in memory up to a bound and in an
//! unnamed file beyond it. The data directory is on the same disk: it costs a copy in the page cache.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use futures::StreamExt;
use tempfile::SpooledTempFile;

use super::exception::Exception;
use super::frames::Decoder;
use super::request::Request;

/// Bodies up to this size stay in memory.
const IN_MEMORY: usize = 8 << 20;
/// The longest statement text. The engine's own `max_query_size` is 256 KiB; rows don't count.
const LONGEST_TEXT: u64 = 16 << 20;

/// A body that has arrived.
pub(crate) struct Received {
    file: SpooledTempFile,
    /// Bytes, decompressed.
    pub(crate) length: u64,
}

/// Collects the body. A form's parts go to the request, and nothing is left of the body.
pub(crate) async fn receive(
    body: Body,
    headers: &HeaderMap,
    request: &mut Request,
    spool: &Path,
) -> Result<Received, Exception> {
    let mut received = Received { file: SpooledTempFile::new_in(IN_MEMORY, spool), length: 0 };
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if let Ok(boundary) = multer::parse_boundary(kind) {
        let mut parts = multer::Multipart::new(body.into_data_stream(), boundary);
        while let Some(part) = parts.next_field().await.map_err(torn)? {
            let name = part.name().unwrap_or_default().to_owned();
            request.part(&name, part.text().await.map_err(torn)?)?;
        }
        return Ok(received);
    }
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let said = "The sandbox's ClickHouse takes no Content-Encoding; use decompress=1";
        return Err(Exception::new(89, "UNKNOWN_COMPRESSION_METHOD", said));
    }
    let mut decoder = Decoder::default();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(torn)?;
        if request.compressed_body {
            received.write(&decoder.decode(&piece)?)?;
        } else {
            received.write(&piece)?;
        }
    }
    decoder.finish()?;
    Ok(received)
}

fn torn(error: impl std::fmt::Display) -> Exception {
    Exception::new(210, "NETWORK_ERROR", format!("the request's body broke off: {error}"))
}

fn disk(error: std::io::Error) -> Exception {
    Exception::new(75, "CANNOT_WRITE_TO_FILE_DESCRIPTOR", format!("collecting the request's body: {error}"))
}

impl Received {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Exception> {
        self.length += bytes.len() as u64;
        self.file.write_all(bytes).map_err(disk)
    }

    /// The first bytes, up to the longest statement's length.
    pub(crate) fn beginning(&mut self) -> Result<Vec<u8>, Exception> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0)).map_err(disk)?;
        Read::by_ref(&mut self.file).take(LONGEST_TEXT).read_to_end(&mut bytes).map_err(disk)?;
        Ok(bytes)
    }

    /// The whole as a statement's text.
    pub(crate) fn text(&mut self) -> Result<Vec<u8>, Exception> {
        if self.length > LONGEST_TEXT {
            return Err(Exception::new(229, "QUERY_IS_TOO_LARGE", "a statement of more than 16 MiB"));
        }
        self.beginning()
    }

    /// Hands everything from `start` on to `take`, piece by piece.
    pub(crate) fn each(
        &mut self,
        start: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), Exception>,
    ) -> Result<(), Exception> {
        self.file.seek(SeekFrom::Start(start)).map_err(disk)?;
        let mut piece = vec![0; 256 << 10];
        loop {
            match self.file.read(&mut piece).map_err(disk)? {
                0 => return Ok(()),
                length => take(piece.get(..length).unwrap_or_default())?,
            }
        }
    }
}
