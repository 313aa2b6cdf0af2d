//! A body in every content coding that makes it smaller, each with its own ETag.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use sha2::{Digest, Sha256};

use super::encodings::{Accepted, CODINGS};
use crate::etag;

/// Size below which compression saves less than its headers add.
pub(crate) const MIN_COMPRESSED_BYTES: usize = 1_024;

const GZIP_LEVEL: u32 = 6;
const BROTLI_LEVEL: i32 = 5;
const ZSTD_LEVEL: i32 = 9;

/// A body and its ETag. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    pub(crate) body: Bytes,
    pub(crate) etag: HeaderValue,
    /// `None` for the uncompressed body.
    pub(crate) coding: Option<HeaderValue>,
}

impl Encoded {
    pub(super) fn new(body: Vec<u8>, coding: Option<&'static str>) -> Self {
        let etag = etag::from_digest(&Sha256::digest(&body));
        // Without spare capacity, because the cache weighs a body by its length.
        Self { body: body.into_boxed_slice().into(), etag, coding: coding.map(HeaderValue::from_static) }
    }
}

/// The compressed bodies, in the order of [`CODINGS`]; `None` where compression does not make the body smaller.
#[derive(Debug, Default)]
pub(crate) struct Compressed([Option<Encoded>; CODINGS.len()]);

impl Compressed {
    /// Compresses a body with every coding. This takes milliseconds of CPU time.
    pub(crate) fn new(plain: &[u8]) -> Self {
        let with = |coding: &'static str, result: std::io::Result<Vec<u8>>| {
            let result =
                result.inspect_err(|error| tracing::warn!(%error, coding, "a body could not be compressed"));
            result.ok().filter(|body| body.len() < plain.len()).map(|body| Encoded::new(body, Some(coding)))
        };
        let [gzip_, brotli_, zstd_] = CODINGS;
        Self([
            with(gzip_, gzip(plain)),
            with(brotli_, brotli(plain)),
            with(zstd_, zstd::bulk::compress(plain, ZSTD_LEVEL)),
        ])
    }

    /// Returns the smallest body among the accepted codings.
    pub(crate) fn smallest(&self, accepted: Accepted) -> Option<&Encoded> {
        let candidates = self.0.iter().enumerate().filter(|(at, _)| accepted.contains(*at));
        candidates.filter_map(|(_, encoded)| encoded.as_ref()).min_by_key(|one| one.body.len())
    }

    /// All compressed bodies.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Encoded> {
        self.0.iter().flatten()
    }

    /// Returns the memory of all bodies.
    pub(crate) fn weight_bytes(&self) -> usize {
        self.all().map(|one| one.body.len()).sum()
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
