//! GitHub, or a service with the same API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use crate::fixture::Fixture;

/// A scripted GitHub with one user.
#[derive(Clone, Default)]
struct FakeGithub {
    user: Arc<Mutex<Value>>,
    challenge: Arc<Mutex<String>>,
}

fn respond(body: &Value) -> Response {
    ([("content-type", "application/json; charset=utf-8")], body.to_string()).into_response()
}

async fn exchange(State(fake): State<FakeGithub>, form: Bytes) -> Response {
    let request: BTreeMap<_, _> = form_urlencoded::parse(&form).into_owned().collect();
    let hashed = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&request["code_verifier"]));
    let known =
        request["client_id"] == "us" && request["client_secret"] == "hush" && request["code"] == "right";
    if known && hashed == *fake.challenge.lock().unwrap() {
        return respond(
            &json!({ "access_token": "let-me-see", "token_type": "bearer", "scope": "read:user" }),
        );
    }
    // GitHub returns 200 here.
    respond(&json!({ "error": "bad_verification_code", "error_description": "The code is incorrect." }))
}

async fn user(State(fake): State<FakeGithub>, headers: HeaderMap) -> Response {
    if headers["authorization"] != "Bearer let-me-see" || !headers.contains_key("user-agent") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    respond(&fake.user.lock().unwrap())
}

async fn emails() -> Response {
    respond(&json!([
        {"email": "old@example.com", "primary": false, "verified": true, "visibility": null},
        {"email": "octo@example.com", "primary": true, "verified": true, "visibility": "private"},
    ]))
}

async fn github() -> (Fixture, FakeGithub) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let fake = FakeGithub::default();
    *fake.user.lock().unwrap() = json!({"id": 583231, "login": "octocat", "name": null});
    let app = Router::new()
        .route("/login/oauth/access_token", post(exchange))
        .route("/api/user", get(user))
        .route("/api/user/emails", get(emails))
        .with_state(fake.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let set = [
        format!("signin.providers.github.issuer={base}"),
        format!("signin.providers.github.user_url={base}/api/user"),
        "signin.providers.github.client_id=us".to_owned(),
        "signin.providers.github.client_secret=hush".to_owned(),
    ];
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    (Fixture::with(&set).await, fake)
}

/// Signs in with a code and returns the final page.
async fn sign_in(fixture: &Fixture, fake: &FakeGithub, code: &str) -> (StatusCode, String) {
    let mut browser = fixture.browser();
    let provider_url = browser.begin("github", "/account").await;
    assert_eq!(provider_url.path(), "/login/oauth/authorize");
    let request: BTreeMap<_, _> = provider_url.query_pairs().into_owned().collect();
    assert_eq!(request["redirect_uri"], "http://localhost:8080/api/auth/oauth/github/callback");
    fake.challenge.lock().unwrap().clone_from(&request["code_challenge"]);
    let response = browser.call_callback("github", &format!("code={code}&state={}", request["state"])).await;
    if response.status != StatusCode::SEE_OTHER {
        return (response.status, response.text);
    }
    let page = browser.get("/account").await;
    (page.status, page.text)
}

#[tokio::test]
async fn a_renamed_user_keeps_the_identity() {
    let (fixture, fake) = github().await;
    let (status, page) = sign_in(&fixture, &fake, "right").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(page.contains("octocat") && page.contains("octo@example.com"), "{page}");
    *fake.user.lock().unwrap() = json!({"id": 583231, "login": "octopus", "name": "Octo Pus"});
    let (_, page) = sign_in(&fixture, &fake, "right").await;
    assert!(page.contains("Octo Pus"), "{page}");
    assert_eq!(fixture.texts("select subject from identities").await, ["583231"]);
    *fake.user.lock().unwrap() = json!({"id": 99, "login": "octocat", "name": null});
    sign_in(&fixture, &fake, "right").await;
    assert_eq!(fixture.texts("select subject from identities order by 1").await, ["583231", "99"]);
}

#[tokio::test]
async fn a_wrong_code_is_rejected_despite_its_200() {
    let (fixture, fake) = github().await;
    let (status, page) = sign_in(&fixture, &fake, "wrong").await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{page}");
    assert!(fixture.texts("select subject from identities").await.is_empty());
}

#[tokio::test]
async fn a_user_api_without_an_identity_is_rejected() {
    let (fixture, fake) = github().await;
    *fake.user.lock().unwrap() = json!({"login": "octocat"});
    let (status, page) = sign_in(&fixture, &fake, "right").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY, "{page}");
    assert!(fixture.texts("select subject from identities").await.is_empty());
}
