//! What every page promises browsers, and that nothing it shows can act.

use http::StatusCode;

use crate::browser::Answer;
use crate::stand::Stand;

#[track_caller]
fn promises(answer: &Answer, referrer: &str) {
    let policy = answer.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.ends_with("form-action 'self'; base-uri 'none'; frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(answer.header("referrer-policy"), referrer);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("x-frame-options"), "DENY");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.text.matches("<h1>").count(), 1, "{}", answer.text);
    assert!(!answer.text.contains("<script"), "{}", answer.text);
}

#[tokio::test]
async fn pages_keep_their_address_to_themselves_and_let_nothing_in() {
    let stand = Stand::with(&["signin.local=true"]).await;
    let trial = stand.trial().await;
    let mut stranger = stand.browser();
    for path in ["/login", "/claim/nothing", &trial.path, "/api/auth/oauth/google"] {
        promises(&stranger.get(path).await, "no-referrer");
    }
    promises(&stranger.post_from(None, "/logout", &[]).await, "no-referrer");
    // A form under `no-referrer` would be posted with `Origin: null`.
    promises(&stranger.get("/login/local").await, "same-origin");
    let mut browser = stand.signed_in("ada").await;
    for path in ["/account", &trial.path] {
        promises(&browser.get(path).await, "same-origin");
    }
}

#[tokio::test]
async fn what_people_call_themselves_is_text() {
    let stand = Stand::with(&["signin.local=true"]).await;
    let mut browser = stand.browser();
    browser.post("/login/local", &[("email", "\"><script>alert(1)</script>@x.test")]).await;
    let trial = stand.trial().await;
    for path in ["/account", "/login", &trial.path] {
        let page = browser.get(path).await.text;
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
    }
}

#[tokio::test]
async fn a_stranger_is_sent_to_sign_in() {
    let stand = Stand::start().await;
    let answer = stand.browser().get("/account").await;
    assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, "/login"));
}

#[tokio::test]
async fn every_provider_has_a_button_that_leads_back() {
    let stand = Stand::start().await;
    let page = stand.browser().get("/login?returnTo=%2Fclaim%2Fabc").await.text;
    for name in ["a", "b"] {
        assert!(page.contains(&format!("/api/auth/oauth/{name}?returnTo=%2Fclaim%2Fabc")), "{page}");
        assert!(page.contains(&format!("Continue with Provider {name}")), "{page}");
    }
    let page = stand.browser().get("/login?returnTo=//evil.test").await.text;
    assert!(!page.contains("evil"), "{page}");
}

#[tokio::test]
async fn with_postgres_away_a_page_says_so() {
    let stand = Stand::start().await;
    let mut browser = stand.signed_in("ada").await;
    stand.app.db.close().await;
    let page = browser.get("/account").await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
    promises(&page, "no-referrer");
}
