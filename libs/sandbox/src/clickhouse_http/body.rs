//! A request's body, received completely before the statement runs.
//!
//! An insert must write nothing if its client disconnects, and a slow client must not hold a statement's permit. So rows are
//! buffered first: in memory up to a limit, beyond it in an unnamed file. The file is on the disk of the data directory and
//! costs a copy in the page cache.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use futures::StreamExt;
use tempfile::SpooledTempFile;

use super::exception::Exception;
use super::frames::Decoder;
use super::request::Request;

/// The size up to which a body is buffered in memory.
const MAX_MEMORY_BYTES: usize = 8 << 20;
/// Maximum size of a statement's text, without rows. The engine's own `max_query_size` is 256 KiB.
const MAX_TEXT_BYTES: u64 = 16 << 20;

/// A received body.
pub(crate) struct ReceivedBody {
    file: SpooledTempFile,
    /// Size in bytes, decompressed.
    pub(crate) length: u64,
}

/// Receives the body. Parts of a multipart form are added to the request, and the body is then empty.
pub(crate) async fn receive(
    body: Body,
    headers: &HeaderMap,
    request: &mut Request,
    spool: &Path,
) -> Result<ReceivedBody, Exception> {
    let mut received = ReceivedBody { file: SpooledTempFile::new_in(MAX_MEMORY_BYTES, spool), length: 0 };
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if let Ok(boundary) = multer::parse_boundary(kind) {
        let mut parts = multer::Multipart::new(body.into_data_stream(), boundary);
        while let Some(part) = parts.next_field().await.map_err(interrupted)? {
            let name = part.name().unwrap_or_default().to_owned();
            request.part(&name, part.text().await.map_err(interrupted)?)?;
        }
        return Ok(received);
    }
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let message = "The sandbox's ClickHouse doesn't support Content-Encoding; use decompress=1";
        return Err(Exception::new(89, "UNKNOWN_COMPRESSION_METHOD", message));
    }
    let mut decoder = Decoder::default();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(interrupted)?;
        if request.compressed_body {
            received.write(&decoder.decode(&piece)?)?;
        } else {
            received.write(&piece)?;
        }
    }
    decoder.finish()?;
    Ok(received)
}

fn interrupted(error: impl std::fmt::Display) -> Exception {
    Exception::new(210, "NETWORK_ERROR", format!("the request's body was interrupted: {error}"))
}

fn disk_error(error: std::io::Error) -> Exception {
    Exception::new(75, "CANNOT_WRITE_TO_FILE_DESCRIPTOR", format!("buffering the request's body: {error}"))
}

impl ReceivedBody {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Exception> {
        self.length += bytes.len() as u64;
        self.file.write_all(bytes).map_err(disk_error)
    }

    /// Returns the first bytes, up to the maximum size of a text.
    pub(crate) fn beginning(&mut self) -> Result<Vec<u8>, Exception> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0)).map_err(disk_error)?;
        Read::by_ref(&mut self.file).take(MAX_TEXT_BYTES).read_to_end(&mut bytes).map_err(disk_error)?;
        Ok(bytes)
    }

    /// Returns the whole body as a statement's text.
    pub(crate) fn text(&mut self) -> Result<Vec<u8>, Exception> {
        if self.length > MAX_TEXT_BYTES {
            return Err(Exception::new(229, "QUERY_IS_TOO_LARGE", "a statement of more than 16 MiB"));
        }
        self.beginning()
    }

    /// Passes the bytes from `start` on to `consume`, piece by piece.
    pub(crate) fn for_each_piece(
        &mut self,
        start: u64,
        mut consume: impl FnMut(&[u8]) -> Result<(), Exception>,
    ) -> Result<(), Exception> {
        self.file.seek(SeekFrom::Start(start)).map_err(disk_error)?;
        let mut piece = vec![0; 256 << 10];
        loop {
            match self.file.read(&mut piece).map_err(disk_error)? {
                0 => return Ok(()),
                length => consume(piece.get(..length).unwrap_or_default())?,
            }
        }
    }
}
