//! Redirects to a provider and back: bound to one browser, single use, with an expiry, and only to pages of this host.

use chrono::TimeDelta;
use http::{Method, StatusCode};
use serde_json::Value;

use crate::browser::{Browser, BrowserResponse, send};
use crate::fixture::Fixture;

fn assert_not_signed_in(response: &BrowserResponse, browser: &Browser) {
    assert_eq!(response.status, StatusCode::BAD_REQUEST, "{}", response.text);
    assert!(response.text.contains("<h1>Please sign in again</h1>"), "{}", response.text);
    assert!(!browser.cookies.contains_key("session"));
}

#[tokio::test]
async fn signing_in_returns_to_the_requested_path() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    let response = browser.sign_in("a", &fixture.a, "ada", "/claim/abc?x=y").await;
    assert_eq!((response.status, response.header("location")), (StatusCode::SEE_OTHER, "/claim/abc?x=y"));
    assert_eq!(response.header("referrer-policy"), "no-referrer");
    let cookie = response.header("set-cookie");
    assert!(cookie.starts_with("session=") && cookie.ends_with("; HttpOnly; SameSite=Lax"), "{cookie}");
    assert!(browser.is_signed_in().await);
}

#[tokio::test]
async fn the_return_path_never_leads_to_another_host() {
    let fixture = Fixture::start().await;
    for external_url in ["//evil.test", "https://evil.test/", "/\\evil.test", "/\t/evil.test"] {
        let mut browser = fixture.browser();
        let response = browser.sign_in("a", &fixture.a, "ada", external_url).await;
        assert_eq!(response.header("location"), "/console", "{external_url:?}");
    }
}

#[tokio::test]
async fn an_unknown_state_is_rejected() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    let params = fixture.a.approve(&browser.begin("a", "/account").await, "ada");
    for wrong in ["code=code-1&state=guessed", "code=code-1", "code=code-1&state=", ""] {
        assert_not_signed_in(&browser.call_callback("a", wrong).await, &browser);
    }
    assert_eq!(fixture.a.exchanges(), 0, "no code was exchanged");
    assert_eq!(browser.call_callback("a", &params).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_second_callback_is_rejected() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    let params = fixture.a.approve(&browser.begin("a", "/account").await, "ada");
    assert_eq!(browser.call_callback("a", &params).await.status, StatusCode::SEE_OTHER);
    browser.cookies.remove("session");
    assert_not_signed_in(&browser.call_callback("a", &params).await, &browser);
    assert_eq!(fixture.a.exchanges(), 1);
}

#[tokio::test]
async fn a_reused_code_under_a_new_state_is_rejected() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    let first = fixture.a.approve(&browser.begin("a", "/account").await, "ada");
    browser.call_callback("a", &first).await;
    let mut second_browser = fixture.browser();
    let second = fixture.a.approve(&second_browser.begin("a", "/account").await, "eve");
    let replayed = second_browser.call_callback("a", &second.replace("code-2", "code-1")).await;
    assert_eq!(replayed.status, StatusCode::BAD_REQUEST, "{}", replayed.text);
    assert!(!second_browser.is_signed_in().await);
}

#[tokio::test]
async fn a_sign_in_of_another_browser_is_rejected() {
    let fixture = Fixture::start().await;
    let (mut attacker, mut victim) = (fixture.browser(), fixture.browser());
    let params = fixture.a.approve(&attacker.begin("a", "/account").await, "eve");
    assert_not_signed_in(&victim.call_callback("a", &params).await, &victim);
    // Not even in a browser with an attempt of its own.
    victim.begin("a", "/account").await;
    assert_not_signed_in(&victim.call_callback("a", &params).await, &victim);
    assert_eq!(fixture.a.exchanges(), 0);
    assert_eq!(
        attacker.call_callback("a", &params).await.status,
        StatusCode::SEE_OTHER,
        "nor is the attempt consumed"
    );
}

#[tokio::test]
async fn two_tabs_of_one_browser_can_sign_in_concurrently() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    let first = fixture.a.approve(&browser.begin("a", "/claim/one").await, "ada");
    let second = fixture.a.approve(&browser.begin("a", "/claim/two").await, "ada");
    assert_eq!(browser.call_callback("a", &first).await.header("location"), "/claim/one");
    assert_eq!(browser.call_callback("a", &second).await.header("location"), "/claim/two");
}

#[tokio::test]
async fn an_attempt_expires() {
    let fixture = Fixture::start().await;
    for (after, expected) in
        [(TimeDelta::seconds(599), StatusCode::SEE_OTHER), (TimeDelta::seconds(600), StatusCode::BAD_REQUEST)]
    {
        let mut browser = fixture.browser();
        let params = fixture.a.approve(&browser.begin("a", "/account").await, "ada");
        fixture.advance_clock(after);
        assert_eq!(browser.call_callback("a", &params).await.status, expected, "after {after}");
    }
}

#[tokio::test]
async fn a_callback_of_another_provider_is_rejected() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    let params = fixture.a.approve(&browser.begin("a", "/account").await, "ada");
    assert_not_signed_in(&browser.call_callback("b", &params).await, &browser);
    assert_eq!((fixture.a.exchanges(), fixture.b.exchanges()), (0, 0));
}

#[tokio::test]
async fn a_cancelled_sign_in_can_be_retried() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    let provider_url = browser.begin("a", "/claim/abc").await;
    let state = provider_url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let response = browser.call_callback("a", &format!("error=access_denied&state={state}")).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert!(
        response.text.contains("<h1>You are not signed in</h1>")
            && response.text.contains("returnTo=%2Fclaim%2Fabc"),
        "{}",
        response.text
    );
}

#[tokio::test]
async fn an_unconfigured_provider_is_a_problem_with_a_hint() {
    let fixture = Fixture::start().await;
    let call = async |path: &str| {
        let response = send(&fixture.router, Method::GET, path, &[], "").await;
        let problem: Value = serde_json::from_str(&response.text).unwrap();
        (response.status, problem)
    };
    for path in ["/api/auth/oauth/google", "/api/auth/oauth/google/callback?code=x&state=y"] {
        let (status, problem) = call(path).await;
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &"not_found".into()));
        assert!(problem["hint"].as_str().unwrap().contains("signin.providers.google.client_id"), "{problem}");
    }
    let (status, problem) = call("/api/auth/oauth/unknown").await;
    assert_eq!((status, &problem["hint"]), (StatusCode::NOT_FOUND, &Value::Null));
    let page = fixture.browser().get("/api/auth/oauth/google").await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (StatusCode::NOT_FOUND, "text/html; charset=utf-8")
    );
}

#[tokio::test]
async fn sign_ins_per_address_are_rate_limited() {
    let fixture = Fixture::with(&["signin.max_attempts_per_hour=2"]).await;
    for _ in 0..2 {
        fixture.browser().begin("a", "/account").await;
    }
    let response = send(&fixture.router, Method::GET, "/api/auth/oauth/a", &[], "").await;
    assert_eq!(response.status, StatusCode::TOO_MANY_REQUESTS, "{}", response.text);
    assert!(response.header("retry-after").parse::<u32>().unwrap() <= 3_600);
    let page = fixture.browser().get("/api/auth/oauth/a").await;
    assert_eq!(page.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(page.text.contains("<h1>") && !page.header("retry-after").is_empty(), "{}", page.text);
}

#[tokio::test]
async fn an_unavailable_provider_is_reported() {
    let closed_port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let issuer = format!("signin.providers.a.issuer=http://{closed_port}");
    let fixture = Fixture::with(&[&issuer]).await;
    let page = fixture.browser().get("/api/auth/oauth/a").await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(page.text.contains("<h1>Back soon</h1>"), "{}", page.text);
}

#[tokio::test]
async fn stored_attempts_are_encrypted_and_deleted() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    let provider_url = browser.begin("a", "/claim/a-secret-token").await;
    let stored = "select s::text from sign_ins s";
    let rows = fixture.texts(stored).await;
    assert_eq!(rows.len(), 1);
    let query_secrets = provider_url.query_pairs().filter(|(name, _)| name == "state" || name == "nonce");
    for secret in query_secrets
        .map(|(_, value)| value.into_owned())
        .chain(["a-secret-token".to_owned(), browser.cookies["signin"].clone()])
    {
        let hex = secret.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert!(!rows[0].contains(&secret) && !rows[0].contains(&hex), "{secret}");
    }
    fixture.advance_clock(TimeDelta::hours(1));
    fixture.browser().begin("a", "/account").await;
    assert_eq!(fixture.texts(stored).await.len(), 1, "the expired attempt is deleted");
}
