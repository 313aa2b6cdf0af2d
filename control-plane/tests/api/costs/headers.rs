//! Headers of every response: it is not stored by caches, and it is nothing but its declared type.

use axum::body::Body;
use http::{Method, Request};

use crate::harness::Api;

#[tokio::test]
async fn no_cache_stores_a_response_and_no_browser_guesses_its_type() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let send = async |method: Method, path: &str, key: &str| {
        let request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {key}"));
        api.raw_response(request.body(Body::empty()).unwrap()).await
    };
    for (method, path, key, status) in [
        (Method::GET, "/api/account", key.as_str(), 200),
        (Method::POST, "/api/trial", "", 201),
        (Method::GET, "/api/account", "wrong", 401),
        (Method::GET, "/api/nothing", &key, 404),
        (Method::PATCH, "/api/account", &key, 405),
        (Method::POST, "/api/forms", &key, 415),
        (Method::GET, "/login", "", 200),
    ] {
        let response = send(method, path, key).await;
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(response.headers()["cache-control"], "no-store", "{path}");
    }
    let document = send(Method::GET, "/api/openapi.json", "").await;
    assert_eq!(document.headers()["cache-control"], "no-cache");
    assert_eq!(document.headers()["x-content-type-options"], "nosniff");
}
