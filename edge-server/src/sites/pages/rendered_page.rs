//! A rendered page: its body, plain and compressed.
//!
//! A version is compressed once, in the background. A request only selects a body.

use std::sync::Arc;

use http::HeaderValue;
use uuid::Uuid;

use super::encoded::{Compressed, Encoded, MIN_COMPRESSED_BYTES};
use super::encodings::Accepted;
use crate::sites::page_views::ViewCounter;

/// Memory of a version beside its bodies.
const OVERHEAD_BYTES: usize = 512;

/// A version of a page. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RenderedPage(Arc<Version>);

/// What a page was rendered from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// `None` for an HTML file without a page. Its views are not counted.
    pub(crate) page_id: Option<Uuid>,
    /// Path of the file that it shows.
    pub(crate) path: Option<Box<str>>,
}

impl From<Uuid> for Origin {
    fn from(page_id: Uuid) -> Self {
        Self { page_id: Some(page_id), path: None }
    }
}

#[derive(Debug)]
struct Version {
    origin: Origin,
    plain: Encoded,
    /// The ETag of the page that this one was rewritten from, for display at another URL.
    source: Option<HeaderValue>,
    compressed: Compressed,
    needs_compression: bool,
    views: Option<ViewCounter>,
}

impl RenderedPage {
    /// Returns a version that is not compressed yet.
    pub(crate) fn new(origin: impl Into<Origin>, html: String) -> Self {
        let origin = origin.into();
        let views = origin.page_id.map(ViewCounter::new);
        Self::uncompressed(origin, html, None, views)
    }

    fn uncompressed(
        origin: Origin,
        html: String,
        source: Option<HeaderValue>,
        views: Option<ViewCounter>,
    ) -> Self {
        let needs_compression = html.len() >= MIN_COMPRESSED_BYTES;
        let (plain, compressed) = (Encoded::new(html.into(), None), Compressed::default());
        Self(Arc::new(Version { origin, plain, source, compressed, needs_compression, views }))
    }

    /// Returns the page for display at another URL: its relative links refer to `base_url`. This takes milliseconds of CPU
    /// time for a large page.
    pub(crate) fn with_base_url(&self, base_url: &str) -> Self {
        let Version { origin, plain, views, .. } = &*self.0;
        let html = domain::rendering::at(&String::from_utf8_lossy(&plain.body), base_url);
        Self::uncompressed(origin.clone(), html, Some(plain.etag.clone()), views.clone())
    }

    /// Returns whether this page was rewritten from the current content of `page`.
    pub(crate) fn is_rewritten_from(&self, page: &Self) -> bool {
        self.0.origin == page.0.origin && self.0.source.as_ref() == Some(&page.0.plain.etag)
    }

    /// Returns the path of the file that the page shows.
    pub(crate) fn path(&self) -> Option<&str> {
        self.0.origin.path.as_deref()
    }

    /// Returns the number of bytes of the uncompressed body.
    pub(crate) fn len(&self) -> usize {
        self.0.plain.body.len()
    }

    /// Returns whether this is the version of the page with this HTML.
    pub(crate) fn is_version(&self, origin: &Origin, html: &str) -> bool {
        self.0.origin == *origin && self.0.plain.body == html.as_bytes()
    }

    /// Returns whether both are the same object in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn needs_compression(&self) -> bool {
        self.0.needs_compression
    }

    /// Compresses the version with every coding. This takes milliseconds of CPU time.
    pub(crate) fn compressed(&self) -> Self {
        let Version { origin, plain, source, views, .. } = &*self.0;
        let compressed = Compressed::new(&plain.body);
        Self(Arc::new(Version {
            origin: origin.clone(),
            plain: plain.clone(),
            source: source.clone(),
            compressed,
            needs_compression: false,
            views: views.clone(),
        }))
    }

    /// Returns the smallest body among the accepted codings.
    pub(crate) fn smallest_body(&self, accepted: Accepted) -> &Encoded {
        self.0.compressed.smallest(accepted).unwrap_or(&self.0.plain)
    }

    /// Returns the counter of its views; `None` if they are not counted.
    pub(crate) fn views(&self) -> Option<&ViewCounter> {
        self.0.views.as_ref()
    }

    /// Returns the memory of all bodies.
    pub(crate) fn weight_bytes(&self) -> usize {
        OVERHEAD_BYTES + self.0.plain.body.len() + self.0.compressed.weight_bytes()
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::sites::pages::encodings::CODINGS;

    fn accepting(codings: &str) -> Accepted {
        Accepted::from_headers(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, codings.parse().unwrap())]))
    }

    fn page(html: &str) -> RenderedPage {
        RenderedPage::new(Uuid::nil(), html.to_owned()).compressed()
    }

    #[test]
    fn every_coding_is_smaller_round_trips_and_has_its_own_etag() {
        let html = "<p>a page with much the same in it</p>".repeat(100);
        let page = page(&html);
        let mut etags = vec![page.smallest_body(accepting("identity")).etag.clone()];
        for coding in CODINGS {
            let sent = page.smallest_body(accepting(coding));
            assert_eq!(sent.coding.as_ref().unwrap(), coding);
            assert!(sent.body.len() < html.len());
            let back = match coding {
                "gzip" => std::io::read_to_string(flate2::read::GzDecoder::new(&sent.body[..])).unwrap(),
                "br" => std::io::read_to_string(brotli::Decompressor::new(&sent.body[..], 4_096)).unwrap(),
                _ => String::from_utf8(zstd::bulk::decompress(&sent.body, html.len()).unwrap()).unwrap(),
            };
            assert_eq!(back, html, "{coding}");
            etags.push(sent.etag.clone());
        }
        etags.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
        etags.dedup();
        assert_eq!(etags.len(), 4);
        assert!(page.weight_bytes() > html.len());
    }

    #[test]
    fn sends_the_smallest_accepted_body() {
        let page = page(&"<p>a page with much the same in it</p>".repeat(100));
        let size = |codings| page.smallest_body(accepting(codings)).body.len();
        let smallest = CODINGS.into_iter().map(size).min().unwrap();
        assert_eq!(size("gzip, deflate, br, zstd"), smallest);
        assert_eq!(size("deflate"), size("identity"));
    }

    #[test]
    fn sends_an_incompressible_body_uncompressed() {
        let noise: String = (0_u32..2_000)
            .flat_map(|n| Sha256::digest(n.to_le_bytes()).to_vec())
            .filter_map(|byte| char::from_u32(u32::from(byte) * 97 + 0x4e00))
            .collect();
        let page = page(&noise[..1_023]);
        assert!(page.smallest_body(accepting("gzip")).body.len() <= 1_023);
        let short = RenderedPage::new(Uuid::nil(), "<p>short".to_owned());
        assert!(!short.needs_compression());
        assert!(short.smallest_body(accepting("br")).coding.is_none());
    }
}
