//! The response with a file of a site, from its bytes in memory.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use super::file_templates::FileResponse;
use super::site_file::SiteFile;
use crate::sites::answers::address_headers::AddressHeaders;
use crate::sites::cached_response::CachedResponse;
use crate::sites::header_templates::HeaderTemplate;
use crate::sites::pages::encoded::{Compressed, Encoded};

/// A file that was found for a request.
pub(crate) struct FoundFile {
    pub(crate) file: Arc<SiteFile>,
    /// Headers that the site itself sets.
    pub(crate) headers: Option<Arc<AddressHeaders>>,
    pub(crate) body: FileBody,
}

/// The body to send of a file.
pub(crate) struct FileBody {
    pub(super) sent: Encoded,
    /// All compressed bodies, if the client accepts one of them.
    pub(super) compressed: Option<Arc<Compressed>>,
}

impl FileBody {
    /// Returns the whole file as it is.
    pub(super) fn plain(file: &SiteFile, body: Bytes) -> Self {
        Self { sent: Encoded { body, etag: file.etag.clone(), coding: None }, compressed: None }
    }
}

impl FoundFile {
    /// Returns the response, or a 304 if an ETag of the file `is_known`. Each body is the same file, so a client that has any
    /// of them has the current one.
    pub(crate) fn respond(&self, is_known: impl Fn(&HeaderValue) -> bool) -> CachedResponse<'_> {
        let compressed = self.body.compressed.iter().flat_map(|compressed| compressed.all());
        let mut etags = std::iter::once(&self.file.etag).chain(compressed.map(|one| &one.etag));
        if let Some(known) = etags.find(|etag| is_known(etag)) {
            return CachedResponse::of_file(self.template(FileResponse::NotModified), known, None);
        }
        let sent = &self.body.sent;
        let response = if sent.coding.is_some() { FileResponse::Encoded } else { FileResponse::Plain };
        CachedResponse::of_file(self.template(response), &sent.etag, Some(sent))
    }

    fn template(&self, response: FileResponse) -> &HeaderTemplate {
        match &self.headers {
            Some(headers) => headers.file_template(&self.file.templates, response),
            None => self.file.templates.template(response),
        }
    }
}
