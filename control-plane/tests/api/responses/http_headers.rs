//! Headers that HTTP clients act on: the challenge of a 401, compression of requests and responses.

use std::io::Read;

use axum::body::Body;
use axum::response::Response;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::harness::Api;

async fn send(api: &Api, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    api.raw_response(request.body(Body::from(body.to_owned())).unwrap()).await
}

async fn bytes(response: Response) -> Vec<u8> {
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

#[tokio::test]
async fn a_401_names_the_scheme() {
    let api = Api::start(&[]).await;
    for (headers, challenge) in [
        (&[][..], "Bearer realm=\"api\""),
        (&[("authorization", "Bearer st_live_wrong")], "Bearer realm=\"api\", error=\"invalid_token\""),
        (&[("authorization", "Basic eDp5")], "Bearer realm=\"api\""),
    ] {
        let response = send(&api, Method::GET, "/api/account", headers, "").await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.headers()["www-authenticate"], challenge);
    }
}

#[tokio::test]
async fn a_compressed_request_body_is_rejected_as_such() {
    let api = Api::start(&[]).await;
    let authorization = format!("Bearer {}", api.trial().await);
    let headers = |coding| {
        [
            ("authorization", authorization.as_str()),
            ("content-type", "application/json"),
            ("content-encoding", coding),
        ]
    };
    let body = r#"{"name": "F"}"#;
    for coding in ["gzip", "br", "deflate"] {
        let response = send(&api, Method::POST, "/api/folders", &headers(coding), body).await;
        assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{coding}");
        assert_eq!(response.headers()["accept-encoding"], "identity");
        let problem: Value = serde_json::from_slice(&bytes(response).await).unwrap();
        assert!(problem["detail"].as_str().unwrap().contains(coding), "{problem}");
    }
    let response = send(&api, Method::POST, "/api/folders", &headers("identity"), body).await;
    assert_eq!(response.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn malformed_json_is_reported_with_its_place_and_as_a_field_error() {
    let api = Api::start(&[]).await;
    let authorization = format!("Bearer {}", api.trial().await);
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let response = send(&api, Method::POST, "/api/folders", &headers, "{\n  \"name\": \"F\",\n  x\n}").await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let problem: Value = serde_json::from_slice(&bytes(response).await).unwrap();
    let detail = "not valid JSON at line 3, column 3: a name in double quotes is expected here, and no comma before `}`";
    assert_eq!((&problem["code"], &problem["detail"]), (&json!("malformed_json"), &json!(detail)));
    assert_eq!(problem["fieldErrors"], json!([{"field": "body", "code": "json", "message": detail}]));
}

#[tokio::test]
async fn the_document_is_sent_again_only_if_it_has_changed() {
    let api = Api::start(&[]).await;
    let first = send(&api, Method::GET, "/api/openapi.json", &[("accept-encoding", "gzip;q=0")], "").await;
    assert!(!first.headers().contains_key("content-encoding"));
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let known = [("if-none-match", tag.as_str()), ("accept-encoding", "gzip")];
    let again = send(&api, Method::GET, "/api/openapi.json", &known, "").await;
    assert_eq!(
        (again.status(), &again.headers()["etag"]),
        (StatusCode::NOT_MODIFIED, &first.headers()["etag"])
    );
    assert!(bytes(again).await.is_empty());
    let changed = [("if-none-match", "W/\"other\"")];
    assert_eq!(send(&api, Method::GET, "/api/openapi.json", &changed, "").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn answers_with_a_secret_url_are_not_compressed() {
    let api = Api::start(&[]).await;
    let authorization = format!("Bearer {}", api.trial().await);
    let headers = [
        ("authorization", authorization.as_str()),
        ("content-type", "application/json"),
        ("accept-encoding", "gzip"),
    ];
    let webhook = json!({"url": format!("https://hooks.example/{}", "x".repeat(1_500))}).to_string();
    let created = send(&api, Method::POST, "/api/webhooks", &headers, &webhook).await;
    let created: Value = serde_json::from_slice(&bytes(created).await).unwrap();
    let one = format!("/api/webhooks/{}", created["id"].as_str().unwrap());
    for path in ["/api/webhooks", one.as_str()] {
        let response = send(&api, Method::GET, path, &headers, "").await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert!(!response.headers().contains_key("content-encoding"), "{path}");
        assert!(bytes(response).await.len() > 1_500, "{path}");
    }
}

#[tokio::test]
async fn only_successful_answers_of_reads_are_compressed() {
    let api = Api::start(&[]).await;
    let authorization = format!("Bearer {}", api.trial().await);
    let headers = [
        ("authorization", authorization.as_str()),
        ("content-type", "application/json"),
        ("accept-encoding", "gzip, br"),
    ];
    let plain = bytes(send(&api, Method::GET, "/api/openapi.json", &headers[..2], "").await).await;
    let response = send(&api, Method::GET, "/api/openapi.json", &headers, "").await;
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert!(response.headers()["vary"].to_str().unwrap().to_ascii_lowercase().contains("accept-encoding"));
    let compressed = bytes(response).await;
    assert!(compressed.len() < plain.len() / 5, "{} of {}", compressed.len(), plain.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(compressed.as_slice()).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain);

    let page = json!({"slug": "index", "title": "T", "html": "x".repeat(5_000)}).to_string();
    let response = send(&api, Method::POST, "/api/pages", &headers, &page).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let page: Value = serde_json::from_slice(&bytes(response).await).unwrap();
    let path = format!("/api/pages/{}", page["id"].as_str().unwrap());
    let response = send(&api, Method::GET, &path, &headers, "").await;
    assert_eq!(response.headers()["content-encoding"], "gzip");
    for (method, path, body) in [
        // Its answer has a secret.
        (Method::POST, "/api/keys", json!({"label": "x".repeat(80)}).to_string()),
        (Method::PUT, path.as_str(), json!({"title": "U"}).to_string()),
        // Its answer has texts of the request.
        (Method::GET, &format!("/api/pages?{}=1", "x".repeat(5_000)), String::new()),
    ] {
        let response = send(&api, method.clone(), path, &headers, &body).await;
        assert!(!response.headers().contains_key("content-encoding"), "{method} {path}");
        assert!(serde_json::from_slice::<Value>(&bytes(response).await).is_ok(), "{method} {path}");
    }
}
