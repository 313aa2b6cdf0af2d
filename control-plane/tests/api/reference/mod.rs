//! The reference of the API: the schema for programs, the guide for agents, the pages for people.

mod pages;
mod schema;

use axum::body::Body;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;

use crate::harness::Api;

/// Returns the body and a header of a public text.
async fn read(api: &Api, path: &str, accept_encoding: &str) -> (Vec<u8>, http::HeaderMap) {
    let request = Request::get(path).header(header::ACCEPT_ENCODING, accept_encoding);
    let response = api.raw_response(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    let (parts, body) = response.into_parts();
    (body.collect().await.unwrap().to_bytes().to_vec(), parts.headers)
}

#[tokio::test]
async fn the_texts_are_compressed_and_cached_by_their_tag() {
    let api = Api::start(&[]).await;
    for path in [
        "/api/openapi.json",
        "/api/schema",
        "/api/schema?category=forms",
        "/llms.txt",
        "/docs",
        "/docs/forms",
    ] {
        let (plain, headers) = read(&api, path, "identity").await;
        let (compressed, coded) = read(&api, path, "gzip").await;
        assert_eq!(coded["content-encoding"], "gzip", "{path}");
        assert!(compressed.len() * 2 < plain.len(), "{path}: {} of {}", compressed.len(), plain.len());
        assert_eq!(headers["etag"], coded["etag"], "{path}");
        assert_eq!(
            (headers["vary"].as_bytes(), headers["cache-control"].as_bytes()),
            (&b"accept-encoding"[..], &b"no-cache"[..])
        );
        let again = Request::get(path).header(header::IF_NONE_MATCH, &headers["etag"]).body(Body::empty());
        let response = api.raw_response(again.unwrap()).await;
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{path}");
    }
}
