//! Header templates of a site's files. Files with the same type, lifetime and visibility share them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use domain::media;
use http::{HeaderMap, HeaderValue, header};

use crate::etag;
use crate::request_id::X_REQUEST_ID;
use crate::sites::header_templates::{HeaderTemplate, NOINDEX};

const REVALIDATE: &str = "public, max-age=0, must-revalidate";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// The kind of a response with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileResponse {
    /// A 304.
    NotModified,
    /// The whole file as it is.
    Plain,
    /// The whole file with a content coding.
    Encoded,
}

/// What decides the headers of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FileKind {
    pub(crate) content_type: String,
    /// Whether its name has a hash of its content, so that it never changes.
    pub(crate) is_content_hashed: bool,
    /// Whether it is sent compressed to clients that accept it.
    pub(crate) is_compressed: bool,
    /// Whether search engines may index it.
    pub(crate) is_indexed: bool,
}

/// The headers of files of a kind.
#[derive(Debug)]
pub(crate) struct FileTemplates {
    /// The headers that describe a file, however it is sent.
    pub(super) described: HeaderMap,
    is_compressed: bool,
    /// In the order of [`FileResponse`].
    templates: [HeaderTemplate; 3],
}

/// There are as many kinds as content types that the platform knows, times eight.
static SHARED: LazyLock<Mutex<HashMap<FileKind, Arc<FileTemplates>>>> = LazyLock::new(Mutex::default);

impl FileTemplates {
    /// Returns the templates of a kind.
    pub(crate) fn of(kind: FileKind) -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(templates) = shared.get(&kind) {
            return Arc::clone(templates);
        }
        let templates = Arc::new(Self::new(&kind));
        shared.insert(kind, Arc::clone(&templates));
        templates
    }

    fn new(kind: &FileKind) -> Self {
        let described = description(kind);
        let is_compressed = kind.is_compressed;
        Self { templates: templates(&described, is_compressed), described, is_compressed }
    }

    /// Returns templates with headers that a site sets beside ours.
    pub(crate) fn with(&self, set: impl Fn(&mut HeaderMap)) -> [HeaderTemplate; 3] {
        let mut described = self.described.clone();
        set(&mut described);
        templates(&described, self.is_compressed)
    }

    /// Returns the template of a response.
    pub(crate) fn template(&self, response: FileResponse) -> &HeaderTemplate {
        &self.templates[response as usize]
    }
}

/// Returns the headers that describe a file.
fn description(kind: &FileKind) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    let octets = HeaderValue::from_static("application/octet-stream");
    let content_type = HeaderValue::from_str(&media::with_charset(&kind.content_type)).unwrap_or(octets);
    headers.insert(header::CONTENT_TYPE, content_type);
    let lifetime = if kind.is_content_hashed { IMMUTABLE } else { REVALIDATE };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(lifetime));
    if is_shared(&kind.content_type) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    if !kind.is_indexed {
        headers.insert("x-robots-tag", HeaderValue::from_static(NOINDEX));
    }
    headers
}

/// Returns the templates in the order of [`FileResponse`]. Headers that vary are empty.
fn templates(described: &HeaderMap, is_compressed: bool) -> [HeaderTemplate; 3] {
    [FileResponse::NotModified, FileResponse::Plain, FileResponse::Encoded].map(|response| {
        let mut headers = described.clone();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if is_compressed {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        match response {
            FileResponse::NotModified => headers = etag::not_modified_headers(headers),
            FileResponse::Plain => {
                headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            }
            FileResponse::Encoded => {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(""));
            }
        }
        headers.insert(header::ETAG, HeaderValue::from_static(""));
        headers.insert(&X_REQUEST_ID, HeaderValue::from_static(""));
        HeaderTemplate::new(headers)
    })
}

/// Returns whether pages of any origin may load the file. A sandboxed page has no origin, and must still load its styles,
/// scripts, fonts and images.
fn is_shared(essence: &str) -> bool {
    media::is_image_or_font(essence) || matches!(essence, "text/css" | "text/javascript" | "application/wasm")
}
