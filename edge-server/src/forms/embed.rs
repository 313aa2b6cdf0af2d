//! Our own scripts: the one line that puts a form on somebody's page, and what the form's page runs itself.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::sites::page_response::has;
use crate::state::EdgeState;

const EMBED: &str = include_str!("../../static/embed.js");
const FORM: &str = include_str!("../../static/form.js");
const PROOF: &str = include_str!("../../static/proof.js");

/// What stands on other people's pages. They keep the line for years, so the address never changes, and what is there
/// is asked about again every hour.
pub(crate) async fn embed(State(_): State<EdgeState>, asked: HeaderMap) -> Response {
    script(EMBED, &asked, "public, max-age=3600")
}

/// What forms' pages run.
pub(crate) async fn form(State(_): State<EdgeState>, asked: HeaderMap) -> Response {
    script(FORM, &asked, "public, max-age=300")
}

/// What forms' pages run beside themselves.
pub(crate) async fn proof(State(_): State<EdgeState>, asked: HeaderMap) -> Response {
    script(PROOF, &asked, "public, max-age=300")
}

fn script(text: &'static str, asked: &HeaderMap, kept: &'static str) -> Response {
    let etag = format!("\"{}\"", hex::encode(&Sha256::digest(text)[..16]));
    // Hexadecimal digits in quotes are always a header value.
    let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""));
    let everybody = HeaderValue::from_static("*");
    let mut headers = HeaderMap::new();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, everybody);
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("cross-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let is_had = has(asked, &etag);
    headers.insert(header::ETAG, etag);
    if is_had {
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
    fn the_line_on_other_peoples_pages_loads_less_than_2_kb() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(super::EMBED.as_bytes()).unwrap();
        let bytes = encoder.finish().unwrap().len();
        assert!(bytes < 2_048, "{bytes}");
    }
}
