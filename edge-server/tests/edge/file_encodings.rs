//! Compressed files, and how long browsers keep files.

use std::io::read_to_string;

use http::{Method, StatusCode};

use crate::client::TestResponse;
use crate::harness::Edge;

const CHROME: &str = "gzip, deflate, br, zstd";

async fn get(edge: &Edge, host: &str, path: &str, headers: &[(&str, &str)]) -> TestResponse {
    edge.visitor.send(Method::GET, host, path, headers, "").await
}

/// Waits until a file has its compressed bodies.
async fn until_compressed(edge: &Edge, host: &str, path: &str) {
    let accept = [("accept-encoding", CHROME)];
    sandbox::test::until(async || {
        !get(edge, host, path, &accept).await.header("content-encoding").is_empty()
    })
    .await;
}

fn text() -> String {
    (0..20_000).map(|number| format!("let a{number} = {};\n", number * 7_919)).collect()
}

#[tokio::test]
async fn texts_are_compressed_with_an_etag_for_each_encoding() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    let script = text();
    assert!(script.len() > 256 << 10, "larger than a file that is cached whole");
    site.serve_files(&[("app.js", "text/javascript", script.as_bytes())]).await;
    let plain = get(&edge, &site.host, "/app.js", &[]).await;
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), ("", "accept-encoding"));
    assert_eq!((plain.header("accept-ranges"), plain.text()), ("bytes", script.as_str()));
    until_compressed(&edge, &site.host, "/app.js").await;

    let mut etags = vec![plain.header("etag").to_owned()];
    for coding in ["gzip", "br", "zstd"] {
        let accept = ("accept-encoding", coding);
        let response = get(&edge, &site.host, "/app.js", &[accept]).await;
        assert_eq!((response.status, response.header("content-encoding")), (StatusCode::OK, coding));
        assert_eq!((response.header("vary"), response.header("accept-ranges")), ("accept-encoding", ""));
        assert_eq!(response.header("content-type"), "text/javascript; charset=utf-8");
        let body = &response.body[..];
        assert_eq!(response.header("content-length"), body.len().to_string());
        let read = match coding {
            "gzip" => read_to_string(flate2::read::GzDecoder::new(body)).unwrap(),
            "br" => read_to_string(brotli::Decompressor::new(body, 4_096)).unwrap(),
            _ => String::from_utf8(zstd::bulk::decompress(body, script.len()).unwrap()).unwrap(),
        };
        assert!(read == script && body.len() < script.len() / 2, "{coding}");
        let head = edge.visitor.send(Method::HEAD, &site.host, "/app.js", &[accept], "").await;
        assert_eq!((head.header("content-length"), head.body.len()), (response.header("content-length"), 0));
        assert_eq!(head.header("content-encoding"), coding);
        // A client may have loaded the file before it was compressed.
        for known in [response.header("etag"), plain.header("etag")] {
            let again = get(&edge, &site.host, "/app.js", &[accept, ("if-none-match", known)]).await;
            assert_eq!((again.status, again.header("etag")), (StatusCode::NOT_MODIFIED, known), "{coding}");
            assert_eq!((again.header("vary"), again.header("content-encoding")), ("accept-encoding", ""));
        }
        etags.push(response.header("etag").to_owned());
    }
    etags.sort();
    etags.dedup();
    assert_eq!(etags.len(), 4, "each encoding needs its own strong ETag");

    let range = [("accept-encoding", CHROME), ("range", "bytes=4-5")];
    let part = get(&edge, &site.host, "/app.js", &range).await;
    assert_eq!((part.status, part.text()), (StatusCode::PARTIAL_CONTENT, "a0"), "of the uncompressed file");
    assert_eq!((part.header("content-encoding"), part.header("etag")), ("", plain.header("etag")));
    let of_encoded =
        [range[0], range[1], ("if-range", etags.iter().find(|tag| *tag != plain.header("etag")).unwrap())];
    let whole = get(&edge, &site.host, "/app.js", &of_encoded).await;
    assert_eq!((whole.status, whole.body.len()), (StatusCode::OK, script.len()), "another version's range");
}

#[tokio::test]
async fn only_files_that_become_smaller_are_compressed() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    let (text, svg) = (text(), format!("<svg>{}</svg>", "<path/>".repeat(500)));
    let text = text.as_bytes();
    let digests = site
        .serve_files(&[
            ("a.svg", "image/svg+xml", svg.as_bytes()),
            ("a.wasm", "application/wasm", text),
            ("a.ttf", "font/ttf", text),
            ("a.json", "application/json", text),
            ("a.png", "image/png", text),
            ("a.woff2", "font/woff2", text),
            ("small.css", "text/css", b"p{}"),
        ])
        .await;
    for path in ["/a.svg", "/a.wasm", "/a.ttf", "/a.json"] {
        until_compressed(&edge, &site.host, path).await;
    }
    for path in ["/a.png", "/a.woff2", "/small.css"] {
        let response = get(&edge, &site.host, path, &[("accept-encoding", CHROME)]).await;
        assert_eq!((response.header("content-encoding"), response.header("vary")), ("", ""), "{path}");
    }
    until_compressed(&edge, "assets.localhost", &format!("/{}/a.svg", digests[0])).await;
}

#[tokio::test]
async fn browsers_keep_files_that_are_named_by_their_content() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    let files = [
        "assets/index-BxY3zQ9d.js",
        "_next/static/chunks/main.js",
        "_app/immutable/a.css",
        "static/js/main.0a1b2c3d.js",
        "logo.svg",
        "app.js",
        "assets/index-production.js",
        // Like a hash, and beside two of the same form.
        "assets/view-DQnabcdG.js",
        "assets/vue-Cx9kQ2_z.js",
        // Like a hash, and alone.
        "lib/view-DQnabcdG.js",
    ];
    site.serve_files(&files.map(|path| (path, domain::media::by_name(path), &b"x"[..]))).await;
    for (path, is_kept) in
        files.into_iter().zip([true, true, true, true, false, false, false, true, true, false])
    {
        let response = get(&edge, &site.host, &format!("/{path}"), &[]).await;
        let lifetime = if is_kept {
            "public, max-age=31536000, immutable"
        } else {
            "public, max-age=0, must-revalidate"
        };
        assert_eq!((response.status, response.header("cache-control")), (StatusCode::OK, lifetime), "{path}");
    }
    let other = edge.account("loud-badger").await;
    other.serve_files(&[("assets/index-BxY3zQ9d.js", "text/javascript", b"x")]).await;
    other.set_rules("", "/assets/*\n Cache-Control: no-cache", false).await;
    let response = get(&edge, &other.host, "/assets/index-BxY3zQ9d.js", &[]).await;
    assert_eq!(response.header("cache-control"), "no-cache", "as the site says");
}
