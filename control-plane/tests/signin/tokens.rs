//! Checks of ID tokens: issuer, audience, nonce, time and signature.

use chrono::TimeDelta;
use http::StatusCode;
use serde_json::json;

use crate::fixture::Fixture;
use crate::provider::Overrides;

async fn assert_rejected(fixture: &Fixture, context: &str) {
    let mut browser = fixture.browser();
    let response = browser.sign_in("a", &fixture.a, "ada", "/account").await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST, "{context}: {}", response.text);
    assert!(response.text.contains("could not be verified"), "{context}: {}", response.text);
    assert!(!browser.is_signed_in().await, "{context}");
}

#[tokio::test]
async fn a_token_with_a_wrong_issuer_audience_nonce_or_time_is_rejected() {
    let fixture = Fixture::start().await;
    let cases = [
        ("another issuer", Overrides { issuer: Some(fixture.b.issuer.clone()), ..Overrides::default() }),
        ("another client", Overrides { audience: Some("them".to_owned()), ..Overrides::default() }),
        ("another attempt", Overrides { nonce: Some("of-another".to_owned()), ..Overrides::default() }),
        ("too late", Overrides { expired_since: Some(TimeDelta::seconds(1)), ..Overrides::default() }),
        ("another key", Overrides { foreign_key: true, ..Overrides::default() }),
        ("no signature", Overrides { header: Some(json!({"alg": "none"})), ..Overrides::default() }),
        ("the client's secret", Overrides { header: Some(json!({"alg": "HS256"})), ..Overrides::default() }),
    ];
    for (context, overrides) in cases {
        fixture.a.set_overrides(overrides);
        assert_rejected(&fixture, context).await;
    }
    fixture.a.set_overrides(Overrides::default());
    assert!(fixture.signed_in("ada").await.is_signed_in().await, "and a correct provider is accepted");
}

#[tokio::test]
async fn a_callback_of_another_issuer_exchanges_no_code() {
    let fixture = Fixture::start().await;
    let mut browser = fixture.browser();
    let params = fixture.a.approve(&browser.begin("a", "/account").await, "ada");
    let response = browser.call_callback("a", &format!("{params}&iss={}", fixture.b.issuer)).await;
    assert_eq!((response.status, fixture.a.exchanges()), (StatusCode::BAD_REQUEST, 0), "{}", response.text);
}

#[tokio::test]
async fn a_promised_issuer_parameter_is_required() {
    let fixture = Fixture::start().await;
    fixture.a.set_overrides(Overrides { announces_issuer: true, ..Overrides::default() });
    assert!(fixture.signed_in("ada").await.is_signed_in().await);
    let mut browser = fixture.browser();
    let params = fixture.a.approve(&browser.begin("a", "/account").await, "ada");
    let without_issuer = params.split("&iss=").next().unwrap();
    let response = browser.call_callback("a", without_issuer).await;
    assert_eq!((response.status, fixture.a.exchanges()), (StatusCode::BAD_REQUEST, 1), "{}", response.text);
}

#[tokio::test]
async fn a_rotated_provider_key_is_reloaded() {
    let fixture = Fixture::start().await;
    fixture.signed_in("ada").await;
    fixture.a.rotate_key();
    fixture.signed_in("ada").await;
    assert_eq!(fixture.a.exchanges(), 2);
}

#[tokio::test]
async fn identities_are_matched_by_issuer_and_subject_only() {
    let fixture = Fixture::start().await;
    let email = |email: &str| Overrides { email: Some(email.to_owned()), ..Overrides::default() };
    for provider in [&fixture.a, &fixture.b] {
        provider.set_overrides(email("ada@example.com"));
    }
    let mut at_a = fixture.signed_in("ada").await;
    at_a.post("/account/new", &[]).await;
    let mut at_b = fixture.browser();
    at_b.sign_in("b", &fixture.b, "ada", "/claim/abc").await;
    assert!(
        at_b.get("/account").await.text.contains("You have no account yet"),
        "another identity keeps its account"
    );

    fixture.a.set_overrides(email("ada@new.example"));
    let page = fixture.signed_in("ada").await.get("/account").await.text;
    assert!(page.contains("ada@new.example") && page.contains("Yours since"), "{page}");
    assert_eq!(fixture.texts("select i::text from identities i").await.len(), 2);
}

#[tokio::test]
async fn userinfo_supplies_the_e_mail_of_the_same_subject_only() {
    let fixture = Fixture::start().await;
    let received = json!({"sub": "ada", "email": "ada@example.com", "name": "Ada <b>"});
    fixture.a.set_overrides(Overrides { user_info: Some(received.clone()), ..Overrides::default() });
    let page = fixture.signed_in("ada").await.get("/account").await.text;
    assert!(page.contains("ada@example.com") && page.contains("Ada &lt;b&gt;"), "{page}");
    let page = fixture.signed_in("eve").await.get("/account").await.text;
    assert!(!page.contains("ada@example.com") && page.contains("<strong>eve</strong>"), "{page}");
}

#[tokio::test]
async fn a_malformed_subject_is_rejected() {
    let fixture = Fixture::start().await;
    for subject in ["", "a\0b", &"s".repeat(256)] {
        let mut browser = fixture.browser();
        let response = browser.sign_in("a", &fixture.a, subject, "/account").await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{subject:?}");
    }
}
