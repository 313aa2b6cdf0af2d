//! A page as it is sent: its body in every encoding that makes it smaller, each under an ETag of its own.
//!
//! All of it is made once for a version, off the visitors' path. What is left to do for a visitor is to choose.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::sites::page_views::Tally;
use crate::sites::pages::encodings::{Accepted, CODINGS};

/// Below this the headers weigh more than what compressing saves.
const SMALLEST_BYTES: usize = 1_024;
/// What a version takes in memory beside its bodies.
const OVERHEAD_BYTES: usize = 512;

const GZIP_LEVEL: u32 = 6;
const BROTLI_LEVEL: i32 = 5;
const ZSTD_LEVEL: i32 = 9;

/// A version of a page. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Rendered(Arc<Version>);

#[derive(Debug)]
struct Version {
    page_id: Uuid,
    plain: Encoded,
    /// By the order of [`CODINGS`]; none where it wouldn't be smaller.
    compressed: [Option<Encoded>; CODINGS.len()],
    /// Nobody has tried yet to make it smaller.
    untried: bool,
    views: Tally,
}

/// One body and what it is called by.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) body: Bytes,
    pub(crate) etag: HeaderValue,
    /// How it is compressed, if it is.
    pub(crate) coding: Option<HeaderValue>,
}

impl Encoded {
    fn new(body: Vec<u8>, coding: Option<&'static str>) -> Self {
        let digest = Sha256::digest(&body);
        let etag = format!("\"{}\"", hex::encode(&digest[..16]));
        // Hexadecimal digits in quotes are always a header value.
        let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""));
        // Without the room it grew in: what is kept is weighed by its length.
        Self { body: body.into_boxed_slice().into(), etag, coding: coding.map(HeaderValue::from_static) }
    }
}

impl Rendered {
    /// A version with this HTML, not compressed yet.
    pub(crate) fn new(page_id: Uuid, html: String) -> Self {
        let untried = html.len() >= SMALLEST_BYTES;
        let plain = Encoded::new(html.into(), None);
        Self(Arc::new(Version {
            page_id,
            plain,
            compressed: [const { None }; 3],
            untried,
            views: Tally::of(page_id),
        }))
    }

    /// The same as it is shown elsewhere: what it refers to is read from its own address.
    pub(crate) fn away_from(&self, address: &str) -> Self {
        let Version { page_id, plain, views, .. } = &*self.0;
        let html = domain::rendering::at(&String::from_utf8_lossy(&plain.body), address);
        let (plain, compressed) = (Encoded::new(html.into(), None), [const { None }; 3]);
        Self(Arc::new(Version { page_id: *page_id, plain, compressed, untried: false, views: views.clone() }))
    }

    /// Whether this is the version of that page with that HTML.
    pub(crate) fn is(&self, page_id: Uuid, html: &str) -> bool {
        self.0.page_id == page_id && self.0.plain.body == html.as_bytes()
    }

    /// Whether both are one and the same in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether compressing was not tried yet.
    pub(crate) fn is_untried(&self) -> bool {
        self.0.untried
    }

    /// The same version with every encoding that makes it smaller. Takes milliseconds of a core.
    pub(crate) fn compressed(&self) -> Self {
        let Version { page_id, plain, views, .. } = &*self.0;
        let with = |coding: &'static str, made: std::io::Result<Vec<u8>>| {
            let made =
                made.inspect_err(|error| tracing::warn!(%error, coding, "a page could not be compressed"));
            made.ok()
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
        let views = views.clone();
        Self(Arc::new(Version { page_id: *page_id, plain, compressed, untried: false, views }))
    }

    /// The smallest body that a visitor takes.
    pub(crate) fn for_visitor(&self, accepted: Accepted) -> &Encoded {
        let taken = self.0.compressed.iter().enumerate().filter(|(at, _)| accepted.takes(*at));
        taken
            .filter_map(|(_, encoded)| encoded.as_ref())
            .min_by_key(|one| one.body.len())
            .unwrap_or(&self.0.plain)
    }

    /// Its views since they were last written down.
    pub(crate) fn views(&self) -> &Tally {
        &self.0.views
    }

    /// What it takes in memory, all encodings together.
    pub(crate) fn weight_bytes(&self) -> usize {
        let compressed = self.0.compressed.iter().flatten().map(|one| one.body.len()).sum::<usize>();
        OVERHEAD_BYTES + self.0.plain.body.len() + compressed
    }
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
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
    let mut made = Vec::new();
    brotli::BrotliCompress(&mut body, &mut made, &parameters)?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::*;

    fn accepting(what: &str) -> Accepted {
        Accepted::by(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, what.parse().unwrap())]))
    }

    fn page(html: &str) -> Rendered {
        Rendered::new(Uuid::nil(), html.to_owned()).compressed()
    }

    #[test]
    fn every_encoding_is_smaller_reads_back_and_has_an_etag_of_its_own() {
        let html = "<p>a page with much the same in it</p>".repeat(100);
        let page = page(&html);
        let mut etags = vec![page.for_visitor(accepting("identity")).etag.clone()];
        for coding in CODINGS {
            let sent = page.for_visitor(accepting(coding));
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
    fn of_what_a_visitor_takes_the_smallest_is_sent() {
        let page = page(&"<p>a page with much the same in it</p>".repeat(100));
        let size = |what| page.for_visitor(accepting(what)).body.len();
        let smallest = CODINGS.into_iter().map(size).min().unwrap();
        assert_eq!(size("gzip, deflate, br, zstd"), smallest);
        assert_eq!(size("deflate"), size("identity"));
    }

    #[test]
    fn what_does_not_get_smaller_is_sent_as_it_is() {
        let noise: String = (0_u32..2_000)
            .flat_map(|n| Sha256::digest(n.to_le_bytes()).to_vec())
            .filter_map(|byte| char::from_u32(u32::from(byte) * 97 + 0x4e00))
            .collect();
        let page = page(&noise[..1_023]);
        assert!(page.for_visitor(accepting("gzip")).body.len() <= 1_023);
        let short = Rendered::new(Uuid::nil(), "<p>short".to_owned());
        assert!(!short.is_untried(), "nobody need try");
        assert!(short.for_visitor(accepting("br")).coding.is_none());
    }
}
