//! Provider settings: required, default and invalid ones.

use control_plane::App;
use service::Clock;

use crate::fixture::{Fixture, settings};
use crate::provider::Provider;

#[tokio::test]
async fn google_and_github_need_only_id_and_secret() {
    let fixture = Fixture::with(&[
        "signin.providers.google.client_id=us",
        "signin.providers.google.client_secret=hush",
        "signin.providers.github.client_id=us",
        "signin.providers.github.client_secret=hush",
    ])
    .await;
    let mut browser = fixture.browser();
    let page = browser.get("/login").await.text;
    assert!(page.contains("Continue with Google") && page.contains("Continue with GitHub"), "{page}");
    let provider_url = browser.begin("github", "/account").await;
    assert!(provider_url.as_str().starts_with("https://github.com/login/oauth/authorize?"), "{provider_url}");
}

#[tokio::test]
async fn an_invalid_provider_is_rejected_by_name() {
    let database = sandbox::test::database().await;
    let provider = Provider::start(&Clock::system()).await;
    for (set, message) in [
        (vec!["signin.providers.x.client_id=us", "signin.providers.x.client_secret=s"], "issuer is missing"),
        (vec!["signin.providers.a.client_id="], "client_id is missing"),
        (vec!["signin.providers.a.issuer=nowhere"], "issuer is not a URL"),
        (vec!["signin.allow=not a host"], "signin.allow"),
    ] {
        let config = settings(&database, &provider, &provider, &set).await;
        let error = App::new(&config).err().map(|error| format!("{error:#}")).unwrap_or_default();
        assert!(error.contains(message), "{set:?}: {error}");
        assert!(error.contains("signin"), "{error}");
    }
}
