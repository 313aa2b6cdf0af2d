//! A temporary file for rewritten pages between unpacking and publishing, because all pages may not fit in memory.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The position of a document in [`Documents`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    offset: u64,
    bytes: usize,
}

/// Documents in an unnamed temporary file, which the kernel deletes when this is dropped.
#[derive(Debug)]
pub(crate) struct Documents {
    file: File,
    size: u64,
}

impl Documents {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, size: 0 })
    }

    /// Appends a document.
    pub(crate) fn push(&mut self, html: &str) -> std::io::Result<Span> {
        let span = Span { offset: self.size, bytes: html.len() };
        self.file.write_all(html.as_bytes())?;
        self.size += html.len() as u64;
        Ok(span)
    }

    /// Reads a document back.
    pub(crate) async fn read(self: &Arc<Self>, span: Span) -> std::io::Result<String> {
        let documents = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; span.bytes];
            documents.file.read_exact_at(&mut bytes, span.offset)?;
            String::from_utf8(bytes).map_err(std::io::Error::other)
        });
        read.await.map_err(std::io::Error::other)?
    }
}
