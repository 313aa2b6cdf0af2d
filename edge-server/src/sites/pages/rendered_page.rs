//! A rendered page: its body in every content coding that makes it smaller, each with its own ETag.
//!
//! A version is compressed once, in the background. A request only selects a body.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::encodings::{Accepted, CODINGS};
use crate::etag;
use crate::sites::page_views::ViewCounter;

/// Size below which compression saves less than its headers add.
const MIN_COMPRESSED_BYTES: usize = 1_024;
/// Memory of a version beside its bodies.
const OVERHEAD_BYTES: usize = 512;

const GZIP_LEVEL: u32 = 6;
const BROTLI_LEVEL: i32 = 5;
const ZSTD_LEVEL: i32 = 9;

/// A version of a page. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RenderedPage(Arc<Version>);

#[derive(Debug)]
struct Version {
    page_id: Uuid,
    plain: Encoded,
    /// The ETag of the page that this one was rewritten from, for display at another URL.
    source: Option<HeaderValue>,
    /// In the order of [`CODINGS`]; `None` where compression does not make the body smaller.
    compressed: [Option<Encoded>; CODINGS.len()],
    needs_compression: bool,
    views: ViewCounter,
}

/// A body and its ETag.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) body: Bytes,
    pub(crate) etag: HeaderValue,
    /// `None` for the uncompressed body.
    pub(crate) coding: Option<HeaderValue>,
}

impl Encoded {
    fn new(body: Vec<u8>, coding: Option<&'static str>) -> Self {
        let etag = etag::from_digest(&Sha256::digest(&body));
        // Without spare capacity, because the cache weighs a body by its length.
        Self { body: body.into_boxed_slice().into(), etag, coding: coding.map(HeaderValue::from_static) }
    }
}

impl RenderedPage {
    /// Returns a version that is not compressed yet.
    pub(crate) fn new(page_id: Uuid, html: String) -> Self {
        let needs_compression = html.len() >= MIN_COMPRESSED_BYTES;
        let (plain, compressed) = (Encoded::new(html.into(), None), [const { None }; CODINGS.len()]);
        let views = ViewCounter::new(page_id);
        Self(Arc::new(Version { page_id, plain, source: None, compressed, needs_compression, views }))
    }

    /// Returns the page for display at another URL: its relative links refer to `base_url`. This takes milliseconds of CPU
    /// time for a large page.
    pub(crate) fn with_base_url(&self, base_url: &str) -> Self {
        let Version { page_id, plain, views, .. } = &*self.0;
        let html = domain::rendering::at(&String::from_utf8_lossy(&plain.body), base_url);
        let needs_compression = html.len() >= MIN_COMPRESSED_BYTES;
        Self(Arc::new(Version {
            page_id: *page_id,
            plain: Encoded::new(html.into(), None),
            source: Some(plain.etag.clone()),
            compressed: [const { None }; CODINGS.len()],
            needs_compression,
            views: views.clone(),
        }))
    }

    /// Returns whether this page was rewritten from the current content of `page`.
    pub(crate) fn is_rewritten_from(&self, page: &Self) -> bool {
        self.0.page_id == page.0.page_id && self.0.source.as_ref() == Some(&page.0.plain.etag)
    }

    /// Returns the number of bytes of the uncompressed body.
    pub(crate) fn len(&self) -> usize {
        self.0.plain.body.len()
    }

    /// Returns whether this is the version of the page with this HTML.
    pub(crate) fn is_version(&self, page_id: Uuid, html: &str) -> bool {
        self.0.page_id == page_id && self.0.plain.body == html.as_bytes()
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
        let Version { page_id, plain, source, views, .. } = &*self.0;
        let with = |coding: &'static str, result: std::io::Result<Vec<u8>>| {
            let result =
                result.inspect_err(|error| tracing::warn!(%error, coding, "a page could not be compressed"));
            result
                .ok()
                .filter(|body| body.len() < plain.body.len())
                .map(|body| Encoded::new(body, Some(coding)))
        };
        let [gzip_, brotli_, zstd_] = CODINGS;
        let compressed = [
            with(gzip_, gzip(&plain.body)),
            with(brotli_, brotli(&plain.body)),
            with(zstd_, zstd::bulk::compress(&plain.body, ZSTD_LEVEL)),
        ];
        let plain = Encoded { body: plain.body.clone(), etag: plain.etag.clone(), coding: None };
        Self(Arc::new(Version {
            page_id: *page_id,
            plain,
            source: source.clone(),
            compressed,
            needs_compression: false,
            views: views.clone(),
        }))
    }

    /// Returns the smallest body among the accepted codings.
    pub(crate) fn smallest_body(&self, accepted: Accepted) -> &Encoded {
        let candidates = self.0.compressed.iter().enumerate().filter(|(at, _)| accepted.contains(*at));
        candidates
            .filter_map(|(_, encoded)| encoded.as_ref())
            .min_by_key(|one| one.body.len())
            .unwrap_or(&self.0.plain)
    }

    pub(crate) fn views(&self) -> &ViewCounter {
        &self.0.views
    }

    /// Returns the memory of all bodies.
    pub(crate) fn weight_bytes(&self) -> usize {
        let compressed = self.0.compressed.iter().flatten().map(|one| one.body.len()).sum::<usize>();
        OVERHEAD_BYTES + self.0.plain.body.len() + compressed
    }
}

/// Compresses with gzip.
pub(crate) fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(body)?;
    encoder.finish()
}

fn brotli(mut body: &[u8]) -> std::io::Result<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_LEVEL,
        size_hint: body.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut body, &mut compressed, &parameters)?;
    Ok(compressed)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::*;

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
