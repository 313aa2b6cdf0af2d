//! A temporary file for the contents of a zip between unpacking and storing, because they may not fit in memory.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// A part of a [`Spool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Span {
    /// Splits off the first bytes, at most this many.
    pub(crate) fn split_first(self, bytes: u64) -> (Self, Self) {
        let first = bytes.min(self.bytes);
        (Self { bytes: first, ..self }, Self { offset: self.offset + first, bytes: self.bytes - first })
    }
}

/// An unnamed temporary file that grows, which the kernel deletes when this is dropped.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    size: u64,
}

impl Spool {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, size: 0 })
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<Span> {
        let from = self.size();
        self.write_all(bytes)?;
        Ok(self.span_from(from))
    }

    /// Returns the number of bytes so far.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns everything that was written after the first `offset` bytes.
    pub(crate) fn span_from(&self, offset: u64) -> Span {
        Span { offset, bytes: self.size - offset }
    }

    /// Reads a part back into memory.
    pub(crate) async fn read(self: &Arc<Self>, span: Span) -> io::Result<Vec<u8>> {
        let spool = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || spool.read_blocking(span));
        read.await.map_err(io::Error::other)?
    }

    /// As [`Self::read`], of several spans.
    pub(crate) async fn read_all(self: &Arc<Self>, spans: Vec<Span>) -> io::Result<Vec<Vec<u8>>> {
        let spool = Arc::clone(self);
        let read = move || spans.into_iter().map(|span| spool.read_blocking(span)).collect();
        tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
    }

    /// As [`Self::read`], on a thread that may block.
    pub(crate) fn read_blocking(&self, span: Span) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(span.bytes).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, span.offset)?;
        Ok(bytes)
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Digests bytes as they are written.
pub(crate) struct Digesting<W> {
    pub(crate) sha256: Sha256,
    pub(crate) output: W,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.sha256.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
