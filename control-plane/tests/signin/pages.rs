//! Security headers of the pages, and escaping.

use http::StatusCode;

use crate::browser::BrowserResponse;
use crate::fixture::Fixture;

#[track_caller]
fn assert_headers(response: &BrowserResponse, referrer: &str) {
    let policy = response.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.ends_with("form-action 'self'; base-uri 'none'; frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(response.header("referrer-policy"), referrer);
    assert_eq!(response.header("cache-control"), "no-store");
    assert_eq!(response.header("x-frame-options"), "DENY");
    assert_eq!(response.header("x-content-type-options"), "nosniff");
    assert_eq!(response.text.matches("<h1>").count(), 1, "{}", response.text);
    assert!(!response.text.contains("<script"), "{}", response.text);
}

#[tokio::test]
async fn pages_send_their_security_headers() {
    let fixture = Fixture::with(&["signin.local=true"]).await;
    let trial = fixture.trial().await;
    let mut visitor = fixture.browser();
    for path in ["/login", "/claim/nothing", &trial.path, "/api/auth/oauth/google"] {
        assert_headers(&visitor.get(path).await, "no-referrer");
    }
    assert_headers(&visitor.post_from(None, "/logout", &[]).await, "no-referrer");
    // A form under `no-referrer` would be posted with `Origin: null`.
    assert_headers(&visitor.get("/login/local").await, "same-origin");
    let mut browser = fixture.signed_in("ada").await;
    for path in ["/account", &trial.path] {
        assert_headers(&browser.get(path).await, "same-origin");
    }
}

#[tokio::test]
async fn names_are_escaped() {
    let fixture = Fixture::with(&["signin.local=true"]).await;
    let mut browser = fixture.browser();
    browser.post("/login/local", &[("email", "\"><script>alert(1)</script>@x.test")]).await;
    let trial = fixture.trial().await;
    for path in ["/account", "/login", &trial.path] {
        let page = browser.get(path).await.text;
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
    }
}

#[tokio::test]
async fn a_visitor_without_a_session_is_redirected_to_sign_in() {
    let fixture = Fixture::start().await;
    let response = fixture.browser().get("/account").await;
    let login = "/login?returnTo=%2Faccount";
    assert_eq!((response.status, response.header("location")), (StatusCode::SEE_OTHER, login));
}

#[tokio::test]
async fn every_provider_has_a_button_with_the_return_path() {
    let fixture = Fixture::start().await;
    let page = fixture.browser().get("/login?returnTo=%2Fclaim%2Fabc").await.text;
    for name in ["a", "b"] {
        assert!(page.contains(&format!("/api/auth/oauth/{name}?returnTo=%2Fclaim%2Fabc")), "{page}");
        assert!(page.contains(&format!("Continue with Provider {name}")), "{page}");
    }
    let page = fixture.browser().get("/login?returnTo=//evil.test").await.text;
    assert!(!page.contains("evil"), "{page}");
}

#[tokio::test]
async fn a_page_reports_an_unavailable_postgres() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.signed_in("ada").await;
    fixture.app.db.close().await;
    let page = browser.get("/account").await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_headers(&page, "no-referrer");
}
