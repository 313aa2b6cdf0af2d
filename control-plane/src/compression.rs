//! Compresses the answers of reads with gzip: the API document has 400 KB, and a list up to 1 MiB.
//!
//! Why not the answers of writes: `docs/0014-compressed-answers.md`.

use axum::extract::Request;
use http::{Method, Response, header};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{And, Predicate, SizeAbove};
use web::Uncompressed;

/// Smaller answers fit into one packet anyway.
const MIN_BYTES: u16 = 1_024;

/// The layer. It has an effect only on requests that [`only_for_reads`] left as they are.
pub(crate) fn layer() -> CompressionLayer<And<SizeAbove, IsText>> {
    let predicate = SizeAbove::new(MIN_BYTES.into()).and(IsText);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(predicate)
}

/// Keeps the answers of all but GET as they are: they may hold secrets beside texts of the request.
pub(crate) fn only_for_reads(request: &mut Request) {
    if request.method() != Method::GET {
        request.headers_mut().remove(header::ACCEPT_ENCODING);
    }
}

/// Successful answers in JSON or CSV of operations that show no secret. A problem is rendered once more by the frame, and must stay as it is until then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IsText;

impl Predicate for IsText {
    fn should_compress<B: http_body::Body>(&self, response: &Response<B>) -> bool {
        let kind = response.headers().get(header::CONTENT_TYPE).map_or(&[][..], |kind| kind.as_bytes());
        let is_text = [&b"application/json"[..], b"text/csv"].iter().any(|begin| kind.starts_with(begin));
        response.status().is_success() && is_text && response.extensions().get::<Uncompressed>().is_none()
    }
}
