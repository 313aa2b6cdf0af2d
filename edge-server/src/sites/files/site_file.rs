//! A file of a site, with all that its responses need beside its bytes.

use std::sync::Arc;

use blobs::Name;
use http::HeaderValue;
use store::site_addresses::FoundFile;

use super::compressed_files::is_compressed;
use super::file_templates::{FileKind, FileTemplates};
use crate::etag;

/// A file of a site.
#[derive(Debug)]
pub(crate) struct SiteFile {
    pub(crate) found: FoundFile,
    /// The ETag of the uncompressed file.
    pub(super) etag: HeaderValue,
    /// Whether it is sent compressed to clients that accept it.
    pub(super) is_compressed: bool,
    pub(super) templates: Arc<FileTemplates>,
}

impl SiteFile {
    /// Returns a file. `is_indexed` is whether search engines may index it.
    pub(crate) fn new(found: FoundFile, is_indexed: bool) -> Self {
        let is_content_hashed = found.is_content_hashed;
        let is_compressed = is_compressed(&found.file);
        let content_type = found.file.content_type.clone();
        let kind = FileKind { content_type, is_content_hashed, is_compressed, is_indexed };
        let etag = etag::from_digest(&found.file.sha256);
        Self { found, etag, is_compressed, templates: FileTemplates::of(kind) }
    }

    /// Returns the name of its bytes.
    pub(super) fn blob(&self) -> Name {
        Name { account_id: self.found.file.account_id, sha256: self.found.file.sha256 }
    }

    /// Returns its size.
    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(self.found.file.size_bytes).unwrap_or_default()
    }
}
