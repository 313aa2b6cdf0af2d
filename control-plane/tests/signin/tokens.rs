//! What a provider says is believed only if it says it to us, about this attempt, now, and with its own key.

use chrono::TimeDelta;
use http::StatusCode;
use serde_json::json;

use crate::provider::Says;
use crate::stand::Stand;

async fn is_not_believed(stand: &Stand, what: &str) {
    let mut browser = stand.browser();
    let back = browser.sign_in("a", &stand.a, "ada", "/account").await;
    assert_eq!(back.status, StatusCode::BAD_REQUEST, "{what}: {}", back.text);
    assert!(back.text.contains("could not be verified"), "{what}: {}", back.text);
    assert!(!browser.is_signed_in().await, "{what}");
}

#[tokio::test]
async fn a_token_of_another_issuer_for_another_client_attempt_or_time_is_not_believed() {
    let stand = Stand::start().await;
    let cases = [
        ("another issuer", Says { issuer: Some(stand.b.issuer.clone()), ..Says::default() }),
        ("another client", Says { audience: Some("them".to_owned()), ..Says::default() }),
        ("another attempt", Says { nonce: Some("of-another".to_owned()), ..Says::default() }),
        ("too late", Says { expired_since: Some(TimeDelta::seconds(1)), ..Says::default() }),
        ("another key", Says { foreign_key: true, ..Says::default() }),
        ("no signature", Says { header: Some(json!({"alg": "none"})), ..Says::default() }),
        ("the client's secret", Says { header: Some(json!({"alg": "HS256"})), ..Says::default() }),
    ];
    for (what, says) in cases {
        stand.a.says(says);
        is_not_believed(&stand, what).await;
    }
    stand.a.says(Says::default());
    assert!(stand.signed_in("ada").await.is_signed_in().await, "and the truth is");
}

#[tokio::test]
async fn an_answer_that_another_issuer_sent_is_not_even_shown_to_this_one() {
    let stand = Stand::start().await;
    let mut browser = stand.browser();
    let brought = stand.a.approve(&browser.begin("a", "/account").await, "ada");
    let back = browser.come_back("a", &format!("{brought}&iss={}", stand.b.issuer)).await;
    assert_eq!((back.status, stand.a.exchanges()), (StatusCode::BAD_REQUEST, 0), "{}", back.text);
}

#[tokio::test]
async fn a_provider_that_promises_to_name_itself_must() {
    let stand = Stand::start().await;
    stand.a.says(Says { names_itself: true, ..Says::default() });
    assert!(stand.signed_in("ada").await.is_signed_in().await);
    let mut browser = stand.browser();
    let brought = stand.a.approve(&browser.begin("a", "/account").await, "ada");
    let nameless = brought.split("&iss=").next().unwrap();
    let back = browser.come_back("a", nameless).await;
    assert_eq!((back.status, stand.a.exchanges()), (StatusCode::BAD_REQUEST, 1), "{}", back.text);
}

#[tokio::test]
async fn a_new_key_of_the_providers_is_asked_for() {
    let stand = Stand::start().await;
    stand.signed_in("ada").await;
    stand.a.changes_its_key();
    stand.signed_in("ada").await;
    assert_eq!(stand.a.exchanges(), 2);
}

#[tokio::test]
async fn one_is_recognised_by_issuer_and_subject_and_never_by_the_e_mail() {
    let stand = Stand::start().await;
    let email = |email: &str| Says { email: Some(email.to_owned()), ..Says::default() };
    for provider in [&stand.a, &stand.b] {
        provider.says(email("ada@example.com"));
    }
    let mut at_a = stand.signed_in("ada").await;
    at_a.post("/account/new", &[]).await;
    let mut at_b = stand.browser();
    at_b.sign_in("b", &stand.b, "ada", "/account").await;
    assert!(
        at_b.get("/account").await.text.contains("You have no account yet"),
        "somebody else's stays theirs"
    );

    stand.a.says(email("ada@new.example"));
    let page = stand.signed_in("ada").await.get("/account").await.text;
    assert!(page.contains("ada@new.example") && page.contains("Yours since"), "{page}");
    assert_eq!(stand.texts("select i::text from identities i").await.len(), 2);
}

#[tokio::test]
async fn an_e_mail_may_be_told_elsewhere_but_only_of_the_same_person() {
    let stand = Stand::start().await;
    let told = json!({"sub": "ada", "email": "ada@example.com", "name": "Ada <b>"});
    stand.a.says(Says { user_info: Some(told.clone()), ..Says::default() });
    let page = stand.signed_in("ada").await.get("/account").await.text;
    assert!(page.contains("ada@example.com") && page.contains("Ada &lt;b&gt;"), "{page}");
    let page = stand.signed_in("eve").await.get("/account").await.text;
    assert!(!page.contains("ada@example.com") && page.contains("<strong>eve</strong>"), "{page}");
}

#[tokio::test]
async fn a_subject_that_can_not_be_one_is_not_believed() {
    let stand = Stand::start().await;
    for subject in ["", "a\0b", &"s".repeat(256)] {
        let mut browser = stand.browser();
        let back = browser.sign_in("a", &stand.a, subject, "/account").await;
        assert_eq!(back.status, StatusCode::BAD_REQUEST, "{subject:?}");
    }
}
