//! The local sign-in page, for localhost only.

use control_plane::App;
use http::StatusCode;
use service::Clock;

use crate::fixture::{Fixture, settings};
use crate::provider::Provider;

#[tokio::test]
async fn any_e_mail_address_signs_in() {
    let fixture = Fixture::with(&["signin.local=true"]).await;
    let mut browser = fixture.browser();
    let login = browser.get("/login?returnTo=%2Fclaim%2Fabc").await.text;
    assert!(login.contains("Local only, not for production."), "{login}");
    assert!(login.contains("/login/local?returnTo=%2Fclaim%2Fabc"), "{login}");
    let form = [("email", "Ada@example.com"), ("returnTo", "/claim/abc")];
    let response = browser.post("/login/local", &form).await;
    assert_eq!((response.status, response.header("location")), (StatusCode::SEE_OTHER, "/claim/abc"));
    assert!(browser.get("/account").await.text.contains("Ada@example.com"));
    let mut again = fixture.browser();
    again.post("/login/local", &[("email", "ada@EXAMPLE.com"), ("returnTo", "//evil.test")]).await;
    assert!(again.is_signed_in().await);
    assert_eq!(fixture.texts("select i::text from identities i").await.len(), 1);
}

#[tokio::test]
async fn an_invalid_e_mail_address_is_reported_at_the_field() {
    let fixture = Fixture::with(&["signin.local=true"]).await;
    for typed in ["", "ada", "\u{0}"] {
        let page =
            fixture.browser().post("/login/local", &[("email", typed), ("returnTo", "/claim/x")]).await;
        assert!(page.text.contains("aria-describedby=\"email-error\""), "{}", page.text);
        assert!(page.text.contains("value=\"/claim/x\""), "{}", page.text);
    }
}

#[tokio::test]
async fn the_page_requires_its_setting() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    assert!(!browser.get("/login").await.text.contains("Local only"));
    assert_eq!(browser.get("/login/local").await.status, StatusCode::NOT_FOUND);
    let response = browser.post("/login/local", &[("email", "ada@example.com")]).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_service_refuses_to_start_with_it_on_a_public_base_url() {
    let database = sandbox::test::database().await;
    let provider = Provider::start(&Clock::system()).await;
    for (base_url, starts) in [
        ("https://app.example.com", false),
        ("http://192.168.1.5:8080", false),
        ("http://localhost.example.com", false),
        ("http://127.0.0.1:8080", true),
    ] {
        let base = format!("http.base_url={base_url}");
        let set = [base.as_str(), "http.sites_domain=sites.test", "signin.local=true"];
        let app = App::new(&settings(&database, &provider, &provider, &set).await);
        assert_eq!(app.is_ok(), starts, "{base_url}");
        if let Err(error) = app {
            assert!(error.to_string().contains("signin.local"), "{error}");
        }
    }
}

#[tokio::test]
async fn the_service_refuses_a_folder_for_blobs_with_several_edges() {
    let database = sandbox::test::database().await;
    let provider = Provider::start(&Clock::system()).await;
    let settings = settings(&database, &provider, &provider, &["http.edges=2"]).await;
    let error = App::new(&settings).err().unwrap().to_string();
    assert!(error.contains("2 edges (http.edges) can't share: use s3://bucket"), "{error}");
}
