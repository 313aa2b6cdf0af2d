//! Rewritten pages, kept on disk between unpacking and publishing: they may be too many for memory.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Where a document stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    from: u64,
    bytes: usize,
}

/// Documents in a file that nobody else sees, and that goes with them.
#[derive(Debug)]
pub(crate) struct Documents {
    file: File,
    size: u64,
}

impl Documents {
    /// None yet.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, size: 0 })
    }

    /// Keeps a document.
    pub(crate) fn push(&mut self, html: &str) -> std::io::Result<Place> {
        let place = Place { from: self.size, bytes: html.len() };
        self.file.write_all(html.as_bytes())?;
        self.size += html.len() as u64;
        Ok(place)
    }

    /// The document at a place.
    pub(crate) async fn read(self: &Arc<Self>, place: Place) -> std::io::Result<String> {
        let documents = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; place.bytes];
            documents.file.read_exact_at(&mut bytes, place.from)?;
            String::from_utf8(bytes).map_err(std::io::Error::other)
        });
        read.await.map_err(std::io::Error::other)?
    }
}
