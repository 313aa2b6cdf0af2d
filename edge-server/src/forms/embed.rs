//! The edge's own scripts: the one that embeds a form in another page, and those of a form's page.

use std::sync::LazyLock;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::etag;
use crate::state::EdgeState;

/// It is part of other pages, so they do not pay for its comments.
static EMBED: LazyLock<String> = LazyLock::new(|| without_comments(include_str!("../../static/embed.js")));
const FORM: &str = include_str!("../../static/form.js");
const PROOF: &str = include_str!("../../static/proof.js");

/// `GET /embed.js`: the script for other pages. They reference it for years, so its URL never changes, and browsers
/// revalidate it every hour.
pub(crate) async fn embed(State(_): State<EdgeState>, headers: HeaderMap) -> Response {
    script(&EMBED, &headers, "public, max-age=3600")
}

/// `GET /form.js`: the script of a form's page.
pub(crate) async fn form(State(_): State<EdgeState>, headers: HeaderMap) -> Response {
    script(FORM, &headers, "public, max-age=300")
}

/// `GET /proof.js`: the worker that solves a proof of work.
pub(crate) async fn proof(State(_): State<EdgeState>, headers: HeaderMap) -> Response {
    script(PROOF, &headers, "public, max-age=300")
}

/// Returns a script without indentation and lines that are comments.
fn without_comments(source: &str) -> String {
    let lines =
        source.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with("/**"));
    lines.collect::<Vec<_>>().join("\n")
}

fn script(text: &'static str, request: &HeaderMap, cache_control: &'static str) -> Response {
    let etag = etag::from_digest(&Sha256::digest(text));
    let mut headers = HeaderMap::new();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("cross-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let is_cached = etag::is_listed(request, &etag);
    headers.insert(header::ETAG, etag);
    if is_cached {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8"));
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    #[test]
    fn the_embed_script_is_smaller_than_2_kb() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(super::EMBED.as_bytes()).unwrap();
        let bytes = encoder.finish().unwrap().len();
        assert!(bytes < 2_048, "{bytes}");
    }
}
